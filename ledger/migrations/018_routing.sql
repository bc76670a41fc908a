-- Routes that draw by recipient.

-- sticky says that draws are made of number_hmac of audit.messages, not of the id.
create or replace view audit.weights as
  select v.version, r.value ->> 'route' as route, r.value ->> 'mode' as mode, r.value ->> 'fallback' as fallback,
    (r.value ->> 'lowest_first')::boolean as lowest_first, m.place::integer, m.channel,
    w.weight::numeric as weight,
    least(w.weight::numeric, (v.effects -> 'weights' -> (r.value ->> 'route') ->> m.channel)::numeric) as effective_weight,
    coalesce((r.value ->> 'sticky')::boolean, false) as sticky
  from dispatcher.routing_versions v
  cross join jsonb_array_elements(v.routes) r
  cross join jsonb_array_elements_text(r.value -> 'members') with ordinality m(channel, place)
  left join jsonb_array_elements_text(r.value -> 'weights') with ordinality w(weight, place) on w.place = m.place;
