package report

import (
	"fmt"
	"math"

	"github.com/aweigh/aweigh/sim"
)

// weightFigure holds the weight of those at fault against the fault budget.
func weightFigure(r *sim.Result) figure {
	f := figure{ID: "weight", Title: "Weight at fault, against the budget"}
	if r.Total == 0 {
		f.Caption = "No weight is known."
		return f
	}
	c := &canvas{width: 860, height: 92}
	x := linear(0, float64(r.Total), 1, 859)
	faulty, budget := float64(r.Faulty), float64(r.Budget)
	const top, high = 36, 24
	c.rect("honest", x.at(0), top, x.to-x.from, high, "")
	within := math.Min(faulty, budget)
	c.rect("faulty", x.at(0), top, x.at(within)-x.from, high, "")
	if faulty > budget {
		c.rect("toomuch", x.at(budget), top, x.at(faulty)-x.at(budget), high, "")
	}
	c.line("mark", x.at(budget), top-8, x.at(budget), top+high+8)
	label := "budget " + grouped(r.Budget)
	class, at := "strong m", math.Max(x.at(budget), x.from+wide(label, 13)/2)
	c.text(class, at, top-14, label)
	mine := fmt.Sprintf("at fault %s", grouped(r.Faulty))
	c.text("small", x.from, top+high+22, mine)
	c.text("small e", x.to, top+high+22, fmt.Sprintf("honest %s of %s", grouped(r.Total-min(r.Faulty, r.Total)), grouped(r.Total)))

	relation := "within the budget: everything below must hold"
	if r.Faulty > r.Budget {
		relation = "more than the budget: nothing is promised any more, except that the anchors that broke it can be named"
	}
	if r.Faulty == 0 {
		relation = "no node lies, and no disk does"
	}
	f.Caption = fmt.Sprintf("Anchors that lie, or whose disks do, weigh %s of %s, %s; %s.",
		grouped(r.Faulty), grouped(r.Total), percent(float64(r.Faulty)/float64(r.Total)), relation)
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	return f
}
