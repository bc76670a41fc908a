package simulate

import (
	"fmt"
	"strconv"
)

// split draws how each policy divides the free slots: those of the region, those of whatever region, and
// as a line what one process of the region may take of them.
func (d *drawing) split(s *Scenario, outcomes []Outcome, top float64) {
	d.legend(margin, top-36, [][2]string{{"within", "slots of " + s.Region}, {"queued", "of whatever region"}}, "what one process of "+s.Region+" may take")
	most := max(s.Free(), 1)
	for i := range outcomes {
		most = max(most, outcomes[i].RegionSlots+outcomes[i].AnywhereSlots, outcomes[i].PerWorker)
	}
	scale := barWidth / float64(most)
	for i := range outcomes {
		o := &outcomes[i]
		y := top + float64(i)*barStep
		region, anywhere := float64(o.RegionSlots)*scale, float64(o.AnywhereSlots)*scale
		d.text(barLeft-12, y+15, "head end", o.Policy)
		d.rect(barLeft, y, region, barHeight, "within", fmt.Sprintf("%s: %d slots of %s", o.Policy, o.RegionSlots, s.Region))
		d.rect(barLeft+region, y, anywhere, barHeight, "queued", fmt.Sprintf("%s: %d slots of whatever region", o.Policy, o.AnywhereSlots))
		x := barLeft + float64(o.PerWorker)*scale
		d.line(x, y-4, x, y+barHeight+4, "limit")
		d.text(barLeft+barWidth+12, y+15, "", fmt.Sprintf("%d + %d, %d each", o.RegionSlots, o.AnywhereSlots, o.PerWorker))
	}
	d.text(barLeft+float64(s.Free())*scale, top+float64(len(outcomes))*barStep+8, "soft middle", strconv.FormatInt(s.Free(), 10)+" free")
}
