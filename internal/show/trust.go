package show

import (
	"encoding/hex"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/votes"
)

type standingJSON struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Peer       string `json:"peer,omitempty"`
	Standing   string `json:"standing"`
	Score      uint32 `json:"score"`
	Trend      *int64 `json:"trend,omitempty"` // of the score, this epoch's start against the last one's
	Weight     uint64 `json:"weight"`
	WeighsFrom uint64 `json:"weighs_from,omitempty"` // epoch
	Sponsor    string `json:"sponsor,omitempty"`
	Since      uint64 `json:"since,omitempty"` // epoch of the admission
	Self       bool   `json:"self"`
	NextScore  uint32 `json:"next_score"`
	NextWeight uint64 `json:"next_weight"`
	NextSeated bool   `json:"next_seated"`
	Why        string `json:"why,omitempty"`
	Blame      uint32 `json:"blame,omitempty"` // of its ballots on motions, parts per million
	Key        string `json:"key,omitempty"`
	Missed     uint32 `json:"missed,omitempty"` // epochs in a row without a ballot of it
}

// groupJSON is how many anchors weigh at a time.
type groupJSON struct {
	Least     uint32 `json:"least"`
	Most      uint32 `json:"most"`
	Tolerates uint32 `json:"tolerates"`
	Faults    uint32 `json:"faults"`  // anchors that were proven to lie, for which it bears one more each
	Next      uint32 `json:"next"`    // anchors that would weigh if the epoch ended now
	Changes   uint64 `json:"changes"` // in the epoch so far
}

type trustJSON struct {
	Header      header         `json:"header"`
	Mode        string         `json:"mode"`
	Age         uint64         `json:"epoch_age"` // blocks
	EpochBlocks uint64         `json:"epoch_blocks"`
	BeganNs     int64          `json:"began_ns"`
	EndsNs      int64          `json:"ends_ns,omitempty"` // by the clock
	Due         bool           `json:"due"`               // the next block ends it
	TotalWeight uint64         `json:"total_weight"`
	FaultBudget uint64         `json:"fault_budget"`
	Finalize    uint64         `json:"finalize_threshold"`
	FewestStop  uint32         `json:"fewest_stop"`
	FewestBreak uint32         `json:"fewest_break"`
	NextTotal   uint64         `json:"next_total"`
	Group       *groupJSON     `json:"group,omitempty"`
	Anchors     []standingJSON `json:"anchors"`
	Proposals   []proposalJSON `json:"proposals"`
	Void        []voidJSON     `json:"void_approvers,omitempty"`
}

// Trust writes how the anchors stand.
func (p Printer) Trust(r *aweighv1.TrustResponse) error {
	names := namesOf(r)
	if p.Format == JSON {
		return p.JSON(trustOf(r, names))
	}
	seats := 0
	for _, a := range r.Anchors {
		if a.Weight > 0 {
			seats++
		}
	}
	end := fmt.Sprintf("%d of %d blocks", r.Age, r.EpochBlocks)
	switch {
	case r.Due:
		end += ", ends with the next block"
	case r.EndsNs > 0:
		end += ", ends by the clock at " + instant(r.EndsNs)
	}
	rows := [][]string{
		{"epoch", fmt.Sprintf("%d, since %s, %s", r.Header.GetEpoch(), instant(r.BeganNs), end)},
		{"decides", fmt.Sprintf("weight %d of %d finalizes; weight %d may lie (mode %s)", r.Finalize, r.TotalWeight, r.FaultBudget, r.Mode)},
		{"fewest", fewest(r.FewestStop, r.FewestBreak, seats)},
		{"next", fmt.Sprintf("weight %d, if the epoch ended now; %s open", r.NextTotal, Count(len(r.Proposals), "decision"))},
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	rows = [][]string{{"ANCHOR", "ID", "STANDING", "SCORE", "TREND", "WEIGHT", "SHARE", "NEXT", "SPONSOR"}}
	for _, a := range r.Anchors {
		name, sponsor := brief(a.Name), "-"
		if a.Self {
			name += " *"
		}
		if len(a.Sponsor) > 0 {
			sponsor = brief(names[string(a.Sponsor)])
		}
		rows = append(rows, []string{
			name, short(a.Id), standing(a), fmt.Sprint(a.Score), trend(a), fmt.Sprint(a.Weight),
			share(a.Weight, r.TotalWeight), next(a), sponsor,
		})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	p.group(r)
	return p.toldAlone(r.Header)
}

// group writes how many anchors weigh at a time, and why others are on standby; nothing if all weigh.
func (p Printer) group(r *aweighv1.TrustResponse) {
	g := r.Group
	if g == nil {
		return
	}
	bounds := Count(int(g.Most), "anchor")
	if g.Least < g.Most {
		bounds = fmt.Sprintf("%d to %s", g.Least, bounds)
	}
	weigh := 0
	for _, a := range r.Anchors {
		if a.Weight > 0 {
			weigh++
		}
	}
	fmt.Fprintf(p.Out, "\ngroup: %s, large enough for %d that may fail; %d weigh now, and %d would in the next epoch, by %s so far\n",
		bounds, g.Tolerates+g.Faults, weigh, r.NextSeats, Count(int(g.Changes), "change"))
	live := 0
	for _, a := range r.Anchors {
		if a.Standing == "standby" && a.Why != "" {
			fmt.Fprintf(p.Out, "%s is %s\n", Line(a.Name), a.Why)
		}
		if a.Standing == "standby" && a.Missed == 0 {
			live++
		}
	}
	for _, a := range r.Anchors {
		if a.Standing == "active" && a.Missed > 0 && live == 0 {
			fmt.Fprintf(p.Out, "%s is absent, and no anchor on standby can take its place\n", Line(a.Name))
		}
	}
}

// fewest reports how few anchors could do harm.
func fewest(stop, breaks uint32, of int) string {
	some := func(n uint32) string {
		switch {
		case int(n) > of:
			return "not even all " + Count(of, "anchor")
		}
		return fmt.Sprintf("%d of %s", n, Count(of, "anchor"))
	}
	return fmt.Sprintf("%s could stop this scope, %s could break it by lying together", some(stop), some(breaks))
}

func standing(a *aweighv1.Standing) string {
	switch {
	case a.Standing == "probation":
		return fmt.Sprintf("probation until epoch %d", a.WeighsFrom)
	case a.Missed > 0 && (a.Standing == "active" || a.Standing == "standby"):
		return fmt.Sprintf("%s, absent for %s", a.Standing, Count(int(a.Missed), "epoch"))
	}
	return a.Standing
}

func trend(a *aweighv1.Standing) string {
	if a.Trend == nil {
		return "-"
	}
	return fmt.Sprintf("%+d", *a.Trend)
}

func share(weight, total uint64) string {
	if total == 0 {
		return "-"
	}
	tenths := weight * 1000 / total
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

func next(a *aweighv1.Standing) string {
	if !a.NextSeated {
		return "-"
	}
	return fmt.Sprint(a.NextWeight)
}

// namesOf are the anchors' names by their IDs, and of those in decisions.
func namesOf(r *aweighv1.TrustResponse) map[string]string {
	names := make(map[string]string)
	for _, x := range r.Proposals {
		if x.Name != "" {
			names[string(x.Subject)] = x.Name
		}
	}
	for _, v := range r.Void {
		names[string(v.Id)] = v.Name
	}
	for _, a := range r.Anchors {
		names[string(a.Id)] = a.Name
	}
	return names
}

func trustOf(r *aweighv1.TrustResponse, names map[string]string) trustJSON {
	out := trustJSON{
		Header: headerJSON(r.Header), Mode: r.Mode, Age: r.Age, EpochBlocks: r.EpochBlocks, BeganNs: r.BeganNs, EndsNs: r.EndsNs,
		Due: r.Due, TotalWeight: r.TotalWeight, FaultBudget: r.FaultBudget, Finalize: r.Finalize,
		FewestStop: r.FewestStop, FewestBreak: r.FewestBreak, NextTotal: r.NextTotal,
		Anchors: []standingJSON{}, Proposals: []proposalJSON{},
	}
	if g := r.Group; g != nil {
		out.Group = &groupJSON{g.Least, g.Most, g.Tolerates, g.Faults, r.NextSeats, g.Changes}
	}
	for _, a := range r.Anchors {
		out.Anchors = append(out.Anchors, standingJSON{
			ID: hex.EncodeToString(a.Id), Name: a.Name, Peer: a.Peer, Standing: a.Standing, Score: a.Score, Trend: a.Trend,
			Weight: a.Weight, WeighsFrom: a.WeighsFrom, Sponsor: hex.EncodeToString(a.Sponsor), Since: a.Since, Self: a.Self,
			NextScore: a.NextScore, NextWeight: a.NextWeight, NextSeated: a.NextSeated, Why: a.Why, Blame: a.Blame, Key: a.Key, Missed: a.Missed,
		})
	}
	for _, v := range r.Void {
		out.Void = append(out.Void, voidJSON{hex.EncodeToString(v.Id), v.Name, v.Key, hex.EncodeToString(v.Motion), v.Height, v.TimeNs, hex.EncodeToString(v.Proof)})
	}
	for _, x := range r.Proposals {
		out.Proposals = append(out.Proposals, proposalJSONOf(x, names))
	}
	return out
}

// voidJSON is an approver that signed both ways.
type voidJSON struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Key    string `json:"key"`
	Motion string `json:"motion"`
	Height uint64 `json:"height"`
	TimeNs int64  `json:"time_ns"`
	Proof  string `json:"proof"`
}

// void writes which approvers signed both ways; nothing if none did.
func (p Printer) void(r *aweighv1.TrustResponse) {
	for _, v := range r.Void {
		fmt.Fprintf(p.Out, "approver %s (%s) is void: it approved and rejected motion %s, recorded in block %d; readmit it with \"aweigh anchor readmit %s\"\n",
			Line(v.Name), short(v.Id), short(v.Motion), v.Height, Word(v.Name))
	}
}

type changeJSON struct {
	Epoch    uint64 `json:"epoch"`
	Height   uint64 `json:"height"`
	Kind     string `json:"kind"`
	Before   uint32 `json:"before"`
	After    uint32 `json:"after"`
	Reason   string `json:"reason"`
	Proof    string `json:"proof,omitempty"`
	Evidence string `json:"evidence"`
	Fault    string `json:"fault,omitempty"` // what two ballots contradict each other
}

// Explain writes what moved an anchor's trust.
func (p Printer) Explain(a *aweighv1.Standing, r *aweighv1.ExplainResponse, names Names) error {
	changes := make([]changeJSON, len(r.Changes))
	for i, c := range r.Changes {
		changes[i] = changeJSON{
			Epoch: c.Epoch, Height: c.Height, Kind: c.Kind, Before: c.Before, After: c.After, Reason: names.reason(c.Reason),
			Proof: hex.EncodeToString(c.Proof), Evidence: hex.EncodeToString(c.Evidence),
		}
		if len(c.Fault) > 0 {
			e, err := votes.DecodeEquivocation(c.Fault)
			if err != nil {
				return err
			}
			changes[i].Fault = fmt.Sprintf("it signed %v and %v in epoch %d", e.First.Subject, e.Second.Subject, e.First.Domain.Epoch)
		}
	}
	if p.Format == JSON {
		return p.JSON(struct {
			Header  header       `json:"header"`
			Anchor  string       `json:"anchor"`
			Name    string       `json:"name"`
			Changes []changeJSON `json:"changes"`
			More    bool         `json:"more"`
			Oldest  uint64       `json:"oldest,omitempty"`
		}{headerJSON(r.Header), hex.EncodeToString(a.Id), a.Name, changes, r.More, r.Oldest})
	}
	fmt.Fprintf(p.Out, "%s  %s, %s, score %d, weight %d\n", Line(a.Name), hex.EncodeToString(a.Id), standing(a), a.Score, a.Weight)
	if a.Why != "" {
		fmt.Fprintf(p.Out, "weight %d: %s\n", a.Weight, Line(a.Why))
	}
	fmt.Fprintln(p.Out)
	rows := [][]string{{"EPOCH", "BLOCK", "SCORE", "BECAUSE"}}
	for len(changes) > 0 {
		c, last := changes[0], changes[0]
		for changes = changes[1:]; len(changes) > 0 && changes[0].repeats(&c); changes = changes[1:] {
			last = changes[0]
		}
		rows = append(rows, []string{
			span(c.Epoch, last.Epoch), span(c.Height, last.Height), fmt.Sprintf("%d -> %d", c.Before, c.After), c.Reason,
		})
		if c.Fault != "" {
			rows = append(rows, []string{"", "", "", "proof " + c.Proof[:min(8, len(c.Proof))] + ": " + c.Fault})
		}
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	if r.More {
		fmt.Fprintln(p.Out, "… and older ones; ask for more with --limit")
	} else if r.Oldest > 0 {
		fmt.Fprintf(p.Out, "… and older ones, which this node does not hold: it has blocks from height %d on; ask another node\n", r.Oldest)
	}
	return nil
}

// repeats reports whether a line says no more than the one before it, but for its epoch: nothing changed in either.
func (c *changeJSON) repeats(before *changeJSON) bool {
	return c.Before == c.After && c.Before == before.Before && c.After == before.After && c.Reason == before.Reason && c.Fault == "" && before.Fault == ""
}

// span is the numbers from the first to the last.
func span(first, last uint64) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d to %d", first, last)
}
