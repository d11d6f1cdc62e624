package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
)

const (
	programKeys  = 6
	programUnits = 200_000 // that a program reserves mostly: more than it can cost, so that it never exceeds that
	programLease = 1000    // the leases of programs are numbered from here on, see tenant
)

// program asks for a bundle of mutations that conflict with each other and with those of other programs: transactions
// with compares and transactions within, ranges, compactions, leases and names, all of a few keys, and some of them
// twice. Their keys are drawn from the model of the scope.
func (c *client) program() {
	w, r := c.w, c.w.programs
	under := []string{"/"}
	if all := w.Scenario.Load.Under; len(all) > 0 {
		under = all
	}
	prefix := under[r.IntN(len(under))]
	at := c.at.part(prefix + "x")
	m := at.world.watch.modelled()
	if at.liar != nil || m == nil {
		return
	}
	d := model.Drawing{Pick: r.IntN, View: m.At(m.Height()), Leases: []int64{programLease, programLease + 1}, Policy: &w.Genesis.Policy}
	for i := range programKeys {
		d.Keys = append(d.Keys, append([]byte(prefix), "x\x00\x00y\xff\xff"[:1+i]...))
	}
	slices.SortFunc(d.Keys, slices.Compare)
	if other := under[r.IntN(len(under))]; other != prefix {
		d.Other = append([]byte(other), 'x')
	}
	var all []scope.Mutation
	for range 5 + r.IntN(14) {
		all = append(all, c.statement(&d, all))
	}
	if len(all) > 1 { // what is patient stands alone, also when it is asked for again
		all = slices.DeleteFunc(all, func(m scope.Mutation) bool { return m.Patient })
	}
	if one := slices.IndexFunc(all, patient); w.Genesis.Policy.AsksOfKeys() && one >= 0 && r.IntN(3) == 0 { // alone
		m := all[one]
		m.Patient = true
		if lim := &w.Genesis.Policy.Limits; lim.Pending > 0 {
			m.ValidUntil = w.watch.time.from(w.now).Add(time.Duration(r.Int64N(int64(lim.Pending))))
		}
		all = []scope.Mutation{m}
	}
	c.asked = all
	reserve := int64(programUnits)
	if r.IntN(3) == 0 { // less than some of them cost
		reserve = r.Int64N(300)
	}
	at.run(all, reserve, c.begin())
}

// patient reports whether a mutation may be patient.
func patient(m scope.Mutation) bool { return m.Class == scope.Write }

// statement is one mutation of a program.
func (c *client) statement(d *model.Drawing, before []scope.Mutation) scope.Mutation {
	w, r := c.w, c.w.programs
	m := w.mutation(scope.Txn{}, binary.BigEndian.AppendUint64(nil, r.Uint64()))
	if r.IntN(3) == 0 { // soon void, and forgotten
		m.ValidUntil = w.watch.time.from(w.now).Add(time.Duration(r.IntN(4000)) * time.Millisecond)
	}
	switch n := r.IntN(20); {
	case n == 0 && len(before) > 0:
		return before[r.IntN(len(before))]
	case n == 1 && len(c.asked) > 0:
		return c.asked[r.IntN(len(c.asked))]
	}
	class, content := d.Content()
	for class == scope.Compact && w.Scenario.Approval.Motions > 0 { // the recount of motions knows nothing of compactions
		class, content = d.Content()
	}
	if m.Class, m.Content = class, canon.Encode(content); class == scope.Lease {
		m.ValidUntil = max(m.ValidUntil, content.(scope.LeaseRequest).Asked)
	}
	return m
}

// run proposes mutations in one bundle; end is called when all are answered, or none will be.
func (n *Node) run(all []scope.Mutation, reserve int64, end func()) {
	for i := range all {
		all[i].Scope = n.world.id
	}
	b, err := scope.SignReserving(reserve, n.author, n.world.Genesis.Policy.Limits, all...)
	must.OK(err, "signing a program")
	if n.machine == nil {
		end()
		return
	}
	open := 0
	for i := range b.Mutations() {
		id := requestID{mutation: b.Mutations()[i].ID}
		if _, twice := n.requests[id]; !twice {
			open++
		}
		n.expect(request{requestID: id, what: "mutation", until: b.ValidUntil(), done: func(r machine.Reply) {
			if r.Refused == nil {
				n.world.watch.reach("program")
			}
			if open--; open == 0 {
				end()
			}
		}})
	}
	n.soon(machine.Submit{Bundle: b})
}

// programming spreads the programs of a client over the time until Stop.
func (c *client) programming(mine int) {
	for range mine {
		c.w.at(c.w.drawTime(c.w.programs), func() { c.queue(c.program) })
	}
}
