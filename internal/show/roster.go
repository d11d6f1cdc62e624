package show

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh/internal/replay"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

type seatJSON struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Weight uint64 `json:"weight"`
	Score  uint32 `json:"score"`
}

func seats(e *scope.Epoch) []seatJSON {
	out := []seatJSON{}
	for _, x := range e.Roster.Anchors {
		id := x.Key.ID()
		out = append(out, seatJSON{hex.EncodeToString(id[:]), x.Name, e.Roster.Weights.Of(id), uint32(x.Score)})
	}
	return out
}

// seatTable writes the roster of an epoch.
func (p Printer) seatTable(e *scope.Epoch) error {
	rows := [][]string{{"ANCHOR", "ID", "SCORE", "WEIGHT", "SHARE"}}
	total := e.Roster.Weights.Total()
	for _, x := range seats(e) {
		rows = append(rows, []string{brief(x.Name), x.ID[:8], fmt.Sprint(x.Score), fmt.Sprint(x.Weight), share(x.Weight, total)})
	}
	return p.table(rows...)
}

// Roster writes the newest roster that was verified, by so many handovers; pinned
// reports whether the network was compared with one known from elsewhere.
func (p Printer) Roster(g scope.Genesis, e *scope.Epoch, handovers int, took time.Duration, pinned bool, trusted string) error {
	total := e.Roster.Weights.Total()
	finalize := e.Policy.Rules.For(quorum.Finalize).Threshold(total)
	if p.Format == JSON {
		return p.JSON(struct {
			Network   string     `json:"network"`
			Scope     string     `json:"scope"`
			Name      string     `json:"network_name"`
			Pinned    bool       `json:"pinned"`
			Handovers int        `json:"handovers"`
			Epoch     uint64     `json:"epoch"`
			Start     uint64     `json:"start_height"`
			Roster    string     `json:"roster"`
			Pin       string     `json:"pin"`     // of the roster, as --trusted takes it
			Trusted   string     `json:"trusted"` // that was given, and is in the chain
			Policy    string     `json:"policy"`
			Total     uint64     `json:"total_weight"`
			Finalize  uint64     `json:"finalize_threshold"`
			Anchors   []seatJSON `json:"anchors"`
		}{g.Network().String(), g.Hash().String(), g.Name, pinned, handovers, uint64(e.Number), uint64(e.Start), e.Roster.Hash().String(), scope.TrustedOf(e).String(), trusted, e.Policy.Hash().String(),
			total, finalize, seats(e)})
	}
	rows := [][]string{
		{"network", fmt.Sprintf("%s  %s", g.Name, g.Network())},
		{"chain", fmt.Sprintf("%s since the genesis, each certified by the roster before; verified in %s", Count(handovers, "handover"), took.Round(time.Millisecond))},
		{"epoch", fmt.Sprintf("%d, since block %d, %s", e.Number, e.Start, instant(int64(e.Time)))},
		{"roster", fmt.Sprintf("%s, policy %s", e.Roster.Hash().Short(), e.Policy.Hash().Short())},
		{"decides", fmt.Sprintf("weight %d of %d finalizes", finalize, total)},
	}
	if len(g.Prefix()) > 0 {
		rows = slices.Insert(rows, 1, []string{"scope", fmt.Sprintf("%s  %s", Key(g.Prefix()), g.Hash())})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	if err := p.seatTable(e); err != nil {
		return err
	}
	text := "verified here for network %s\n"
	if !pinned {
		text = "consistent with itself, for network %s; give --network to compare\n"
	}
	if _, err := fmt.Fprintf(p.Out, "\n"+text, g.Network()); err != nil {
		return err
	}
	text = "no recent roster was given by --trusted: old keys of anchors could have signed this\n"
	if trusted != "" {
		text = fmt.Sprintf("the chain contains the trusted roster %s\n", trusted)
	}
	if g.Descent == nil {
		text += fmt.Sprintf("pin this roster elsewhere:  --trusted %s\n", scope.TrustedOf(e))
	}
	_, err := fmt.Fprint(p.Out, text)
	return err
}

// Replay writes the result of a replay.
func (p Printer) Replay(r replay.Report, took time.Duration) error {
	if p.Format == JSON {
		return p.JSON(struct {
			Network      string     `json:"network"`
			Height       uint64     `json:"height"`
			Proven       uint64     `json:"proven_height"`
			Epoch        uint64     `json:"epoch"`
			Mutations    int        `json:"mutations"`
			Certificates int        `json:"certificates"`
			Changes      int        `json:"trust_changes"`
			Ledger       string     `json:"ledger"`
			State        string     `json:"state_digest"`
			Anchors      []seatJSON `json:"anchors"`
		}{r.Genesis.Hash().String(), uint64(r.Head.Height), uint64(r.Proven), uint64(r.Epoch.Number), r.Mutations, r.Certificates, r.Changes,
			r.Head.Ledger.String(), r.Head.Digest.String(), seats(r.Epoch)})
	}
	rows := [][]string{
		{"network", fmt.Sprintf("%s  %s", r.Genesis.Name, r.Genesis.Hash())},
		{"replayed", fmt.Sprintf("%s with %s, %s ended, in %s", Count(uint64(r.Head.Height), "block"), Count(r.Mutations, "mutation"), Count(uint64(r.Epoch.Number), "epoch"), took.Round(time.Millisecond))},
		{"verified", fmt.Sprintf("%s; final up to block %d", Count(r.Certificates, "certificate"), r.Proven)},
		{"trust", fmt.Sprintf("%s, ledger %s", Count(r.Changes, "change"), r.Head.Ledger.Short())},
		{"state", fmt.Sprintf("%s, revision %d", r.Head.Digest.Short(), r.Head.Revision)},
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "\nthe roster of epoch %d:\n", r.Epoch.Number)
	if err := p.seatTable(r.Epoch); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Out, "\nall is as this node has it")
	return err
}
