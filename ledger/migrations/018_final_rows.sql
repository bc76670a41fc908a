-- What is final does not change. Statements of package ledger update the columns of outcome, price,
-- plan and receipts, so the dispatcher's login may. These triggers refuse an update that no
-- statement makes. The owner is not refused, because it could drop the trigger.
--
-- Their WHEN clauses are plain expressions, and false for every row that a claim, a settlement or a
-- receipt usually writes. So such an update calls no function.
create function dispatcher.refuse_change() returns trigger
language plpgsql as $$
begin
  if not has_table_privilege(tg_relid, 'trigger') then
    raise exception 'a final row of % cannot be changed (%)', tg_table_name, tg_name
      using errcode = 'insufficient_privilege';
  end if;
  return null;
end
$$;

-- An attempt that was submitted again under its key costs nothing, because the provider bills the
-- submission once, at the price of the latest attempt.
create function dispatcher.refuse_resettling() returns trigger
language plpgsql as $$
begin
  if has_table_privilege(tg_relid, 'trigger') or new.price_micros = 0 and new.segments = 0
    and (new.outcome, new.settled_at, new.answers, new.proved, new.provider_code,
      new.provider_reference) is not distinct from (old.outcome, old.settled_at, old.answers,
      old.proved, old.provider_code, old.provider_reference)
    and exists (select from dispatcher.ambiguous d where d.message_seq = new.message_seq
      and d.attempt <= new.attempt and d.last > new.attempt)
  then
    return null;
  end if;
  raise exception 'attempt % of message % is settled and cannot be changed', old.attempt,
    old.message_seq using errcode = 'insufficient_privilege';
end
$$;

-- A late answer, or a receipt with our key, replaces the outcome unknown. A receipt with our key
-- may add references to those of an accepted attempt. Nothing else of an answer changes.
create trigger attempts_settled
  after update of outcome, price_micros, segments, settled_at, answers, proved, provider_code,
    provider_reference on dispatcher.attempts
  for each row when (old.outcome is not null and (new.outcome is null
    or (old.outcome <> 'unknown' or new.outcome = 'unknown')
      and ((old.outcome, old.price_micros, old.segments, old.settled_at, old.answers, old.proved,
          old.provider_code)
        is distinct from (new.outcome, new.price_micros, new.segments, new.settled_at, new.answers,
          new.proved, new.provider_code)
        or old.provider_reference is distinct from new.provider_reference
          and not (old.outcome = 'accepted'
            and array_remove(string_to_array(coalesce(old.provider_reference, ''), ' '), '')
              <@ string_to_array(coalesce(new.provider_reference, ''), ' ')))))
  execute function dispatcher.refuse_resettling();

-- Receipts only advance: no_receipt, undelivered, delivered.
create trigger attempts_received
  after update of receipt_state, receipt_cause, receipt_code, receipt_at, delivered_at,
    contradicted_at on dispatcher.attempts
  for each row when (old.contradicted_at is distinct from new.contradicted_at
      and old.contradicted_at is not null
    or old.receipt_state is not null and (new.receipt_state is null
      or dispatcher.receipt_rank(new.receipt_state) < dispatcher.receipt_rank(old.receipt_state)
      or new.receipt_state = old.receipt_state
        and (old.receipt_cause, old.receipt_code, old.receipt_at, old.delivered_at)
          is distinct from (new.receipt_cause, new.receipt_code, new.receipt_at, new.delivered_at)))
  execute function dispatcher.refuse_change();

-- Only a message with a next_at is claimed, so only its plan changes. messages_legal_transition
-- guards the states.
create trigger messages_planned
  after update of attempts, rounds, route, routing_version, draw, draw_size, draw_key_id,
    first_choice, segments, alphabet on dispatcher.messages
  for each row when (old.next_at is null
    and (old.attempts, old.rounds, old.route, old.routing_version, old.draw, old.draw_size,
        old.draw_key_id, old.first_choice, old.segments, old.alphabet)
      is distinct from (new.attempts, new.rounds, new.route, new.routing_version, new.draw,
        new.draw_size, new.draw_key_id, new.first_choice, new.segments, new.alphabet))
  execute function dispatcher.refuse_change();

-- Reason and time of a final state change with the state. A message that may have reached its
-- subscriber twice stays flagged, unless it waited for the resend and that was not made.
create trigger messages_ended
  after update of reason, finished_at, possible_duplicate on dispatcher.messages
  for each row when (old.next_at is null and (old.possible_duplicate and not new.possible_duplicate
    or old.state in ('delivered', 'undelivered', 'no_receipt', 'rejected', 'failed', 'dead')
      and new.state = old.state
      and (old.reason, old.finished_at) is distinct from (new.reason, new.finished_at)))
  execute function dispatcher.refuse_change();

-- A verdict final or resent may be replaced, a certain one stays.
create trigger ambiguous_certain after update on dispatcher.ambiguous
  for each row when (old.verdict in ('taken', 'not_taken') and old is distinct from new)
  execute function dispatcher.refuse_change();
