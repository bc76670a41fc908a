package config

import "dispatcher/admission"

// Contract is what was agreed with a provider for each month. It limits nothing: reports compare it
// with what was billed. The zero value means no agreement.
type Contract struct {
	Unit admission.Unit
	// Commitment is the least that has to be bought in a month, Cap the most that should be, both in
	// Unit; money is in micros of the channel's currency. 0 means none.
	Commitment, Cap int64
	// Begins is the day of the month on which an agreed month begins.
	Begins int
}

// LastBegin is the last day that every month has.
const LastBegin = 28

func readContract(v value, channel *Channel) Contract {
	c, before := Contract{Begins: 1}, len(v.r.problems)
	f, ok := v.fields(contractPart)
	if !ok {
		return c
	}
	if unit, ok := f.get("unit"); ok {
		c.Unit = readUnit(unit)
		if c.Unit == admission.Money && channel.Price.Currency == "" {
			unit.fail("a contract in money counts prices, and channel %s has none; give it a price",
				channel.Name)
		}
	}
	c.Commitment, c.Cap = c.amount(f, "commitment"), c.amount(f, "cap")
	if begins, ok := f.get("begins"); ok {
		day := begins.integer(1, LastBegin)
		c.Begins = int(day)
	}
	switch {
	case len(v.r.problems) > before:
	case c.Commitment == 0 && c.Cap == 0:
		v.fail("says neither commitment nor cap; write for example {commitment: 100000}")
	case c.Cap > 0 && c.Commitment > c.Cap:
		v.fail("the commitment is above the cap; one of both must be wrong")
	}
	return c
}

// amount reads an amount in the contract's unit; 0 when the key is missing.
func (c *Contract) amount(f fields, key string) (n int64) {
	at, ok := f.get(key)
	switch {
	case !ok:
	case c.Unit == admission.Money:
		n, _ = at.micros(maxBudget)
	default:
		n = at.integer(1, maxUnits)
	}
	return n
}

func pathsOfContract(p paths, c *Contract) {
	if *c == (Contract{}) {
		return
	}
	shown := number[int64]
	if c.Unit == admission.Money {
		shown = amount
	}
	p.below("unit").setDefault(c.Unit.String(), admission.Messages.String())
	if c.Commitment > 0 {
		p.below("commitment").set(shown(c.Commitment))
	}
	if c.Cap > 0 {
		p.below("cap").set(shown(c.Cap))
	}
	p.below("begins").setDefault(number(int64(c.Begins)), "1")
}
