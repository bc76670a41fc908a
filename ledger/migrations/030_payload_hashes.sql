-- Whether a payload is the one that was received can be told without the draw key, by a login that
-- sees neither number nor text.
--
-- messages.envelope_hmac of messages stored from now on is a hash that has no key of its own: the
-- first eight bytes of SHA-256(salt || envelope). The salt is derived from the draw key and the id
-- of the message, and is stored with the payload. So it is deleted with it, and from then on nobody
-- without the draw key can find a number or a text by trying all values.
-- Dead records have such a hash too. Payloads that an earlier release stored have no salt, and
-- envelope_hmac of their messages is a hash under the draw key.
alter table dispatcher.payloads add column salt bytea;

-- payload_evidence compares each message with its payload, and says one of:
--
--   intact      it is the one that was received
--   changed     another envelope or another salt
--   recipient   another recipient than the hash of the number in the envelope; not found where
--               PostgreSQL cannot read the envelope, because a text has \u0000 or half a surrogate
--   no_salt     its salt was removed
--   unhashed    an earlier release stored it without a salt
--   gone        the message has no payload any more
--
-- An earlier release may store payloads beside this one while it is replaced. So one without a salt
-- is unhashed if its message came before this migration or within a day after it, else no_salt. In
-- a database that was made with this migration it is always no_salt.
--
-- It shows neither salt nor number nor text. Its columns are fixed, so a condition that is evaluated
-- early sees nothing more, and security_barrier is not needed.
create view facts.payload_evidence as
  select m.seq, m.id, m.received_at,
    case when p.seq is null then 'gone'
      when p.salt is not null and m.envelope_hmac is distinct from ('x' || encode(
          substr(sha256(p.salt || p.envelope), 1, 8), 'hex'))::bit(64)::bigint then 'changed'
      when p.recipient is distinct from case when m.number_hmac is not null then coalesce(
          dispatcher.recipient(m.tenant, dispatcher.number_of(p.envelope)), p.recipient) end
        then 'recipient'
      when p.salt is not null then 'intact'
      when m.received_at < s.until then 'unhashed'
      else 'no_salt' end as payload
  from dispatcher.messages m
  left join lateral (
    select seq, recipient, envelope, salt from dispatcher.payloads
    where seq = m.seq offset 0) p on true
  cross join (
    select max(this.applied_at) + interval '1 day' as until
    from dispatcher.schema_migrations this
    join dispatcher.schema_migrations first on first.version = 1
    where this.version = 30 and this.applied_at > first.applied_at + interval '1 hour') s;
