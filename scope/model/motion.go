package model

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// motionIndex is the motions on record.
type motionIndex struct {
	motions map[votes.MotionID]*motion
}

// motion is a motion on keys, or a decision.
type motion struct {
	scope.Motion
	mut      *scope.CheckedMutation
	decision aweigh.Hash // zero: it is on keys
	outside  bool        // no anchor proposed the decision
	bytes    int64       // that it counts
	due      aweigh.Height
	ending   *scope.Ending
	ballots  []ballot
}

// ballot is one that is recorded on a motion.
type ballot struct {
	voter  aweigh.Hash
	choice votes.Choice
	scope.Recorded
}

// record is what stands in the store of a motion.
type record struct {
	_      struct{} `cbor:",toarray"`
	Motion scope.Motion
	Due    aweigh.Height
	Ending *scope.Ending
}

func (p *motion) size() int64 {
	return int64(len(canon.Encode(record{Motion: p.Motion, Due: p.due, Ending: p.ending})))
}

// open are the motions that are open: those that wait for their turn first, the others by deadline.
func (d *motionIndex) open() (all []*motion) {
	for _, p := range d.motions { // order-free: sorted below
		if p.ending == nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *motion) int {
		switch {
		case a.due > 0 && b.due > 0:
			return cmp.Or(cmp.Compare(a.due, b.due), byID(a, b))
		case a.due > 0 || b.due > 0:
			return cmp.Compare(b.due, a.due)
		}
		return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), byID(a, b))
	})
	return all
}

func byID(a, b *motion) int { return slices.Compare(a.mut.ID[:], b.mut.ID[:]) }

// closed are those that are closed, the one that closed first at the head.
func (d *motionIndex) closed() (all []*motion) {
	for _, p := range d.motions { // order-free: sorted below
		if p.ending != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *motion) int { return cmp.Or(cmp.Compare(a.ending.Time, b.ending.Time), byID(a, b)) })
	return all
}

// sum reports how many there are.
func (d *motionIndex) sum() (s scope.MotionIndex) {
	for _, p := range d.motions { // order-free: sums, and the least
		s.Bytes += p.bytes
		switch {
		case p.ending != nil:
			s.Closed++
			continue
		case p.due > 0:
			s.Due++
		default:
			s.Next = aweigh.Earliest(s.Next, p.Deadline)
		}
		s.Open++
	}
	return s
}

// propose lets a transaction wait for approval.
func (m *Model) propose(mut *scope.CheckedMutation, a *scope.Approval, path []bool, out *scope.Outcome) error {
	if len(path) > 1 {
		return errors.New("scope: the policy asks for approval, and voters could not tell what transactions within a transaction would do; send it without")
	}
	out.Succeeded, out.Code = false, scope.Pending
	return m.open(&motion{mut: mut, Motion: scope.Motion{Approval: *a, Success: path[0], Basis: m.basis(mut.Txn, path[0])}})
}

// open opens a motion, or says why that cannot be.
func (m *Model) open(p *motion) error {
	h, e := &m.block.Header, m.block.told.Epoch
	p.Mutation, p.Height, p.Opened, p.Epoch, p.Revision = p.mut.Encode(), h.Height, h.Time, h.Epoch, m.view.Revision
	p.Deadline, p.Policy, p.Entry = h.Time.Add(p.Approval.Window), h.Policy, m.next1()
	var lost uint64
	var required bool
	if p.decision.IsZero() {
		p.Impact = m.impactOf(p)
		if failure := beyond(p); failure != nil {
			return failure
		}
	} else {
		m.unmodelled("impact of a decision")
		p.Impact = m.block.told.Impact(votes.MotionID(p.mut.ID))
	}
	p.Void, lost, required = m.voidOf(&p.Approval, &e.Roster)
	if d := p.mut.Decision; required && (d == nil || d.Kind != scope.Readmit || d.Anchor != nil) {
		return scope.ErrVoid
	}
	if p.Voters = voters(&p.Approval, &e.Roster, p.Void); p.Approval.StepUp {
		if p.Voters = m.seconds(p); len(p.Voters) == 0 {
			if len(p.Void) > 0 {
				return scope.ErrVoid
			}
			return scope.ErrNoSecond
		}
	}
	total, anchors := uint64(0), 0
	for i := range p.Voters {
		if total += p.Voters[i].Weight; p.Voters[i].Anchor {
			anchors++
		}
	}
	p.Rule = ruleOf(&p.Approval, total, lost)
	if anchors < int(p.Rule.MinAnchors) || p.Rule.Num >= total {
		if lost > 0 {
			return scope.ErrVoid
		}
		return errors.New("scope: the policy asks for more approval than all voters together can give")
	}
	var names []string
	if p.decision.IsZero() {
		var failure error
		if names, failure = m.counted(p.mut, byMotions, ofMotion); failure != nil {
			return failure
		}
		p.bytes = p.size()
		gave, failure := m.makeRoom(p)
		if failure != nil {
			return failure
		}
		if gave {
			p.Entry = m.next1()
			p.bytes = p.size()
		}
	}
	m.entry(lineage.Entry{Class: lineage.Opened, Posterior: p.Hash()}, nil)
	m.docket.motions[p.mut.ID] = p
	m.charge(ofMotion+p.mut.ID.String(), names, 1)
	return nil
}

// next1 is the index of the next entry that the model makes.
func (m *Model) next1() int64 {
	x := m.block
	for x.entered < len(x.told.Log) && !m.reckons(&x.told.Log[x.entered]) {
		x.entered++
	}
	return x.told.First + int64(x.entered)
}

// voters are the voters under a roster: its anchors, the approvers, and the sponsor of an admission.
func voters(a *scope.Approval, r *scope.Roster, void []aweigh.Hash) (all []scope.Elector) {
	for i := range r.Anchors {
		if w := r.Weights.Of(r.Anchors[i].Key.ID()); w > 0 {
			all = append(all, scope.Elector{Name: r.Anchors[i].Name, Key: r.Anchors[i].Key, Weight: w, Anchor: true})
		}
	}
	for i := range a.Approvers {
		p := &a.Approvers[i]
		if slices.Contains(void, p.Key.ID()) {
			continue
		}
		w := r.Weights.Total() * uint64(p.Share) / 1_000_000
		all = append(all, scope.Elector{Name: p.Name, Key: p.Key, Weight: w, Required: p.Required || w == 0})
	}
	required := slices.ContainsFunc(a.Approvers, func(p scope.Approver) bool { return p.Key.ID() == a.Sponsor })
	for i := range r.Anchors {
		if r.Anchors[i].Key.ID() == a.Sponsor && !required {
			all = append(all, scope.Elector{Name: r.Anchors[i].Name, Key: r.Anchors[i].Key, Required: true})
		}
	}
	return all
}

// seconds are the voters on a step-up: its approvers, but for the parties that ask for the change. An anchor and its
// node are one party, and so is each signer or holder of the grants.
func (m *Model) seconds(p *motion) (all []scope.Elector) {
	party := func(key aweigh.Hash) any {
		if seat, ok := m.seat(key); ok {
			return seat
		}
		return key
	}
	ask := []any{party(p.mut.Author)}
	for _, g := range grantsOf(p.mut) {
		ask = append(ask, party(g.By.ID()), party(g.To.ID()))
	}
	for _, a := range p.Approval.Approvers {
		if !slices.Contains(ask, party(a.Key.ID())) && !slices.Contains(p.Void, a.Key.ID()) {
			all = append(all, scope.Elector{Name: a.Name, Key: a.Key, Weight: 1})
		}
	}
	return all
}

// ruleOf is what carries a motion: the share of the policy, and of decisions what finalizes as well.
func ruleOf(a *scope.Approval, total, lost uint64) quorum.Rule {
	need := uint64(1)
	for need*uint64(a.Den) < (total+lost)*uint64(a.Num) {
		need = max(need+1, (total+lost)*uint64(a.Num)/uint64(a.Den))
	}
	if f := a.Finalize; f.Den > 0 {
		need = max(need, min(total*f.Num/f.Den+1, total))
	}
	return quorum.Rule{Num: need - 1, Den: total, MinAnchors: max(a.Anchors, a.Finalize.MinAnchors)}
}

// basis is what the puts and deletions of a branch find.
func (m *Model) basis(t *scope.Txn, yes bool) (all []scope.Found) {
	for _, op := range branch(t, yes) {
		if op.Kind != scope.OpPut && op.Kind != scope.OpDelete {
			continue
		}
		var f scope.Found
		if l, ok := m.view.leases[op.Lease]; ok {
			f.TTL, f.Keeper = l.TTL, l.Keeper
		}
		for _, kv := range pairs(m.keys(), op.Key, op.End) {
			f.Keys, f.Newest = f.Keys+1, max(f.Newest, kv.ModRevision)
		}
		all = append(all, f)
	}
	return all
}

// expireMotions closes the motions whose deadline has come, and forgets those that closed long ago, so many at most.
func (m *Model) expireMotions() {
	now := m.block.Header.Time
	for range m.bounds.ExpiredAtOnce {
		all := slices.DeleteFunc(m.docket.open(), func(p *motion) bool { return p.due > 0 || p.Deadline > now })
		if len(all) == 0 {
			break
		}
		m.begin(all[0].mut)
		m.close(all[0], scope.Ending{Fate: scope.MotionExpired})
	}
	for range m.bounds.ForgottenAtOnce {
		all := m.docket.closed()
		if len(all) == 0 || now.Sub(all[0].ending.Time) <= m.bounds.KeptFor {
			break
		}
		delete(m.docket.motions, all[0].mut.ID)
	}
}

// close closes a motion.
func (m *Model) close(p *motion, end scope.Ending) {
	end.Height, end.Time = m.block.Header.Height, m.block.Header.Time
	m.entry(lineage.Entry{Class: lineage.Closed, Reason: end.String(), Prior: p.Hash()}, nil)
	p.ending = &end
	m.charge(ofMotion+p.mut.ID.String(), nil, 0)
	if all := m.docket.closed(); int64(len(all)) > m.bounds.MotionsKept {
		delete(m.docket.motions, all[0].mut.ID)
	}
}

// withdraw ends a motion by the will of its author.
func (m *Model) withdraw(mut *scope.CheckedMutation) error {
	p, size := m.docket.motions[mut.Motion], int64(0)
	if p != nil {
		size = p.size()
	}
	if failure := m.spend(lookCost(int(size))); failure != nil {
		return failure
	}
	switch {
	case p == nil:
		return errors.New("scope: no such motion is on record")
	case p.ending != nil:
		return errors.New("scope: the motion is closed already: " + p.ending.String())
	case p.mut.Author != mut.Author:
		return errors.New("scope: only its author, " + p.mut.Author.Short() + ", can withdraw it")
	case !p.decision.IsZero():
		return errors.New("scope: a decision cannot be withdrawn; reject it")
	}
	m.close(p, scope.Ending{Fate: scope.Withdrawn})
	return nil
}

// week is how long a decision stays open where the policy does not say.
const week = 7 * 24 * time.Hour

// Motions are those on record of the newest block.
func (v *View) Motions() (ids []votes.MotionID) {
	for _, p := range append(v.model.docket.open(), v.model.docket.closed()...) {
		ids = append(ids, p.mut.ID)
	}
	return ids
}
