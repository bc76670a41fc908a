-- The draw key of an instance.
--
-- A submission is known to its provider under a key that is made with the first draw key of the
-- instance that sends it. During a change of keys, the instance that recovers an attempt may have
-- another first key, and must neither repeat nor look up the submission under that one.

alter table dispatcher.instances add column key_id text;
comment on column dispatcher.instances.key_id is
  'id of its first draw key, under which it makes the keys of its submissions; null in rows of earlier builds';
