package show

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

type anchorJSON struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Peer      string `json:"peer"`
	Weight    uint64 `json:"weight"`
	Self      bool   `json:"self"`
	Reachable bool   `json:"reachable"`
	// State is the anchor's own report, or the node's finding: signing, listening, silenced, catching-up,
	// keyless, unseated, stopped, clock, unknown, mute, away or refusing.
	State       string `json:"state"`
	SilentUntil uint64 `json:"silent_until,omitempty"` // of a silenced one: the epoch from which on it signs again
	Address     string `json:"address,omitempty"`
	LastView    uint64 `json:"last_view,omitempty"`
}

type statusJSON struct {
	Header       header       `json:"header"`
	Network      string       `json:"network_name"`
	Node         string       `json:"node_name"`
	Version      string       `json:"version"`
	Peer         string       `json:"peer"`
	Author       string       `json:"author,omitempty"` // key with which the node signs the requests of its clients
	Addresses    []string     `json:"addresses"`
	Anchor       string       `json:"anchor,omitempty"`       // empty for an observer
	Unseated     string       `json:"unseated,omitempty"`     // anchor whose key the node holds, without a seat in the roster
	UnseatedWhy  string       `json:"unseated_why,omitempty"` // barred, retired, evicted
	EpochAge     uint64       `json:"epoch_age"`              // blocks
	EpochBlocks  uint64       `json:"epoch_blocks"`
	Open         uint64       `json:"open_decisions"`
	Mode         string       `json:"mode"`
	View         uint64       `json:"view"`
	Leader       string       `json:"leader"`
	TotalWeight  uint64       `json:"total_weight"`
	FaultBudget  uint64       `json:"fault_budget"`
	Finalize     uint64       `json:"finalize_threshold"`
	OneRound     uint64       `json:"one_round_threshold,omitempty"` // in mode fast
	Reachable    uint64       `json:"reachable_weight"`
	FailuresLeft int64        `json:"failures_left"` // -1: no quorum
	Summary      string       `json:"summary"`
	Anchors      []anchorJSON `json:"anchors"`
	Peers        int          `json:"peers"`
	Waiting      uint64       `json:"waiting"`
	LostState    bool         `json:"lost_state"`
	Listening    bool         `json:"listening"`
	CatchingUp   bool         `json:"catching_up"`
	Snapshot     *progress    `json:"snapshot,omitempty"` // while one is fetched
	Compacted    int64        `json:"compacted"`
	Block        string       `json:"block"`
	BlockTimeNs  int64        `json:"block_time_ns"`
	NowNs        int64        `json:"now_ns"`                    // by the clock that the node counts by
	ClockBehind  int64        `json:"clock_behind_ns,omitempty"` // that clock behind those of most other anchors; ahead: negative
	StateDigest  string       `json:"state_digest"`
	LineageSize  int64        `json:"lineage_size"`
	LineageRoot  string       `json:"lineage_root"`
	Faulty       []string     `json:"faulty,omitempty"`
	Trusted      *pinJSON     `json:"trusted,omitempty"` // none: the genesis is enough
	LostScopes   []string     `json:"lost_scopes,omitempty"`
	Insecure     []string     `json:"insecure,omitempty"` // ports that take clients without certificates
	Void         []string     `json:"void_approvers,omitempty"`

	Partitions []partitionJSON `json:"partitions,omitempty"` // of the policy, without a quorum
}

// pinJSON is the roster that a node's operator trusts.
type pinJSON struct {
	Roster  string `json:"roster"`             // EPOCH:HASH, as --trusted takes it
	Reached bool   `json:"reached"`            // until then the node serves nothing
	SinceNs int64  `json:"since_ns,omitempty"` // when its epoch began, once it is reached
}

func pinOf(p *aweighv1.Pin) *pinJSON {
	if p == nil {
		return nil
	}
	return &pinJSON{p.Roster, p.Reached, p.SinceNs}
}

// trustedRow reports which roster a node's operator trusts, and its age; "" if there is
// none.
func trustedRow(p *aweighv1.Pin) string {
	switch {
	case p == nil:
		return ""
	case !p.Reached:
		return "roster " + p.Roster + ", NOT REACHED: this node serves nothing until a peer shows it the way there"
	}
	since := time.Unix(0, p.SinceNs)
	return fmt.Sprintf("roster %s, whose epoch began at %s, %s", p.Roster, instant(p.SinceNs), ago(time.Since(since)))
}

// voidRow names approvers that vote on no motion.
func voidRow(names []string) string {
	if len(names) == 0 {
		return ""
	}
	are := "are"
	if len(names) == 1 {
		are = "is"
	}
	all := make([]string, len(names))
	for i := range names {
		all[i] = brief(names[i])
	}
	return fmt.Sprintf("%s %s void, having signed both ways on a motion; see \"aweigh anchor ls\"", strings.Join(all, ", "), are)
}

// insecureRow names the ports that take clients without certificates; "" if there are none.
func insecureRow(ports []string) string {
	if len(ports) == 0 {
		return ""
	}
	if len(ports) == 1 {
		return ports[0] + " takes clients without certificates"
	}
	return strings.Join(ports, " and ") + " take clients without certificates"
}

// progress is how far a snapshot was fetched.
type progress struct {
	Height  uint64   `json:"height"`
	Percent float64  `json:"percent"`
	Parts   uint64   `json:"parts"`
	Of      uint64   `json:"of"`
	Bytes   uint64   `json:"bytes"`
	Peers   []string `json:"peers"`
}

func progressOf(s *aweighv1.Snapshot) *progress {
	if s == nil {
		return nil
	}
	p := &progress{Height: s.Height, Parts: s.Parts, Of: s.Of, Bytes: s.Bytes, Peers: s.Peers}
	if s.Of > 0 { // rounded down: 100 is all of it
		p.Percent = float64(s.Parts*1000/s.Of) / 10
	}
	return p
}

func (p *progress) String() string {
	peers := "no peer at present"
	if n := len(p.Peers); n > 0 {
		peers = Count(n, "peer")
	}
	return fmt.Sprintf("%.1f %% of the state of height %d from %s, %d MiB", p.Percent, p.Height, peers, p.Bytes>>20)
}

// Status writes a node's status.
func (p Printer) Status(s *aweighv1.StatusResponse) error {
	if p.Format == JSON {
		return p.JSON(statusOf(s))
	}
	role := "observer"
	switch {
	case len(s.Anchor) > 0:
		role = "anchor " + short(s.Anchor)
	case len(s.Unseated) > 0:
		role = "observer, whose anchor " + short(s.Unseated) + " is not in the roster yet"
		if s.UnseatedWhy != "" {
			role = "observer, whose anchor " + short(s.Unseated) + " has no seat: " + s.UnseatedWhy
		}
	}
	leader := short(s.Leader)
	for _, a := range s.Anchors {
		if string(a.Id) == string(s.Leader) && a.Name != "" {
			leader = a.Name
		}
	}
	root := ""
	if string(s.Header.GetScope()) == string(s.Header.GetNetwork()) {
		root = " (root)"
	}
	rows := [][]string{
		{"network", fmt.Sprintf("%s  %s", s.NetworkName, hex.EncodeToString(s.Header.GetNetwork()))},
		{"node", fmt.Sprintf("%s, %s, version %s", s.NodeName, role, s.Version)},
		{"scope", fmt.Sprintf("%s%s, mode %s, view %d led by %s",
			short(s.Header.GetScope()), root, s.Mode, s.View, leader)},
		{"height", fmt.Sprintf("%d  block %s  %s", s.Header.GetHeight(), short(s.Block), instant(s.BlockTimeNs))},
		{"time", timeAhead(s)},
		{"revision", fmt.Sprintf("%d, compacted %d, lineage of %s", s.Header.GetRevision(), s.Compacted, Count(s.LineageSize, "entry"))},
		{"peers", fmt.Sprintf("%d connected, %s waiting", len(s.Peers), Count(s.Waiting, "write"))},
		{"epoch", fmt.Sprintf("%d, %d of %d blocks; %s", s.Header.GetEpoch(), s.EpochAge, s.EpochBlocks, decisions(s.OpenDecisions))},
		{"decides", fmt.Sprintf("weight %d of %d finalizes%s; anchors of %d sign", s.Finalize, s.TotalWeight, oneRound(s), s.ReachableWeight)},
		{"voters", voidRow(s.VoidApprovers)},
		{"author", authorKey(s)},
		{"trusted", trustedRow(s.Pin)},
		{"insecure", insecureRow(s.Insecure)},
		{"health", Health(s)},
	}
	for _, p := range s.Partitions {
		rows = append(rows, []string{"island", Partition(p)})
	}
	rows = slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })
	if err := p.table(rows...); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	rows = [][]string{{"ANCHOR", "ID", "WEIGHT", "STATE", "ADDRESS"}}
	for _, a := range s.Anchors {
		state, address := AnchorState(a), a.Address
		if a.Self {
			address = "this node"
		} else if address == "" {
			address = "-"
		}
		for _, f := range s.Faulty {
			if string(f) == string(a.Id) {
				state += ", PROVEN AT FAULT"
			}
		}
		rows = append(rows, []string{brief(a.Name), short(a.Id), fmt.Sprint(a.Weight), state, address})
	}
	return p.table(rows...)
}

// AnchorState is an anchor's state in a cell of a table.
func AnchorState(a *aweighv1.Anchor) string {
	return saysOf(a).String()
}

func saysOf(a *aweighv1.Anchor) node.AnchorReport {
	return node.AnchorReport{State: node.ParseAnchorState(a.State), Until: aweigh.Epoch(a.SilentUntil)}
}

// aheadBound is by how much more than that a scope's time must be ahead of this machine's clock to be shown: the
// largest drift bound.
const aheadBound = time.Second

// timeAhead is the text of how far the scope's time is ahead of this machine's clock, "" if it
// is not.
func timeAhead(s *aweighv1.StatusResponse) string {
	ahead := time.Until(time.Unix(0, s.BlockTimeNs))
	if ahead <= aheadBound {
		return ""
	}
	return fmt.Sprintf("THE SCOPE'S TIME IS AHEAD of this machine's clock by %s; writes go on, leases and deadlines wait: compare the clocks of all anchors (aweigh doctor --ntp HOST)",
		ahead.Round(time.Second))
}

func decisions(n uint64) string {
	switch n {
	case 0:
		return "no decisions open"
	case 1:
		return "1 decision open (aweigh anchor ls)"
	}
	return fmt.Sprintf("%d decisions open (aweigh anchor ls)", n)
}

// Health describes how many anchors may fail, and which do not sign.
func Health(s *aweighv1.StatusResponse) string {
	weightless := 0
	var absent []string
	for _, a := range s.Anchors {
		if a.Weight == 0 {
			weightless++
		} else if !a.Reachable && !a.Self { // the node reports more of itself below
			absent = append(absent, a.Name+" "+saysOf(a).Words())
		}
	}
	words := []string{Quorum(s)}
	if more := len(absent) - absentNamed; more > 0 {
		absent = append(absent[:absentNamed], fmt.Sprintf("%d more do not sign", more))
	}
	words = append(words, absent...)
	if weightless > 0 {
		words = append(words, anchors(weightless)+" of weight 0 not counted")
	}
	if off := ClockOff(s); off != "" {
		words = append(words, "THIS NODE'S CLOCK IS "+off+": synchronize it (NTP) and restart this node")
	}
	if s.LostState {
		words = append(words, "THIS ANCHOR LOST STATE and signs nothing in this epoch")
	} else if len(s.LostScopes) > 0 {
		words = append(words, "THIS ANCHOR LOST STATE in "+lostIn(s)+", and signs nothing there in this epoch")
	} else if s.Listening {
		words = append(words, "this anchor signs nothing until it has answers of a quorum")
	}
	if p := progressOf(s.Snapshot); p != nil {
		words = append(words, fmt.Sprintf("catching up by snapshot: %v", p))
	} else if s.CatchingUp {
		words = append(words, "catching up")
	}
	return strings.Join(words, "; ")
}

// ClockOff describes by how much the node found its clock off, as in "behind by 1h0m0s", "" if it did not.
func ClockOff(s *aweighv1.StatusResponse) string {
	switch by := time.Duration(s.ClockBehindNs).Round(10 * time.Millisecond); {
	case by > 0:
		return "behind by " + by.String()
	case by < 0:
		return "ahead by " + (-by).String()
	}
	return ""
}

// lostIn names the scopes below the root in which an anchor lost its record.
func lostIn(s *aweighv1.StatusResponse) string {
	var names []string
	for _, p := range s.LostScopes {
		names = append(names, Key(p))
	}
	if more := len(names) - absentNamed; more > 0 {
		names = append(names[:absentNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// absentNamed bounds the anchors that are named in one line.
const absentNamed = 4

// anchors counts anchors in words.
func anchors(n int) string { return plural(n, "anchor") }

// oneRound says what decides in one round of votes, in mode fast.
func oneRound(s *aweighv1.StatusResponse) string {
	if s.OneRound == 0 {
		return ""
	}
	return fmt.Sprintf(", %d in one round", s.OneRound)
}

// Quorum reports whether the anchors that sign can decide, and how many of them may fail until they cannot. Anchors
// without weight do not count. It is "ok" only if all others sign.
func Quorum(s *aweighv1.StatusResponse) string {
	total, sign := 0, 0
	for _, a := range s.Anchors {
		if a.Weight > 0 {
			total++
			if a.Reachable {
				sign++
			}
		}
	}
	may, more := fmt.Sprint(s.FailuresLeft), fmt.Sprint(s.FailuresLeft)
	if s.FailuresLeft == 0 {
		may, more = "none", "no"
	}
	needed := max(s.Notarize, s.Finalize)
	if s.OneRound > 0 {
		needed = max(needed, s.Nullify)
	}
	switch {
	case s.FailuresLeft < 0 && s.ReachableWeight < needed:
		return fmt.Sprintf("NO QUORUM: anchors of weight %d sign, %d is needed; writes wait", s.ReachableWeight, needed)
	case s.FailuresLeft < 0:
		return fmt.Sprintf("NO QUORUM: %d of %s sign, fewer than the policy asks for; writes wait", sign, anchors(total))
	case sign == total:
		return fmt.Sprintf("ok; %s of %s may fail", may, anchors(total))
	}
	return fmt.Sprintf("degraded; %d of %s sign; %s more may fail", sign, anchors(total), more)
}

func statusOf(s *aweighv1.StatusResponse) statusJSON {
	out := statusJSON{
		Header: headerJSON(s.Header), Network: s.NetworkName, Node: s.NodeName, Version: s.Version, Peer: s.Peer, Author: authorKey(s),
		Addresses: s.Addresses, Anchor: hex.EncodeToString(s.Anchor), Unseated: hex.EncodeToString(s.Unseated), UnseatedWhy: s.UnseatedWhy,
		EpochAge: s.EpochAge, EpochBlocks: s.EpochBlocks, Open: s.OpenDecisions, Mode: s.Mode, View: s.View,
		Leader: hex.EncodeToString(s.Leader), TotalWeight: s.TotalWeight, FaultBudget: s.FaultBudget,
		Finalize: s.Finalize, OneRound: s.OneRound, Reachable: s.ReachableWeight, FailuresLeft: s.FailuresLeft, Summary: Health(s),
		Peers: len(s.Peers), Waiting: s.Waiting, LostState: s.LostState, Listening: s.Listening, CatchingUp: s.CatchingUp, Snapshot: progressOf(s.Snapshot),
		Compacted: s.Compacted, Block: hex.EncodeToString(s.Block), BlockTimeNs: s.BlockTimeNs,
		NowNs: s.NowNs, ClockBehind: s.ClockBehindNs,
		StateDigest: hex.EncodeToString(s.StateDigest), LineageSize: s.LineageSize,
		LineageRoot: hex.EncodeToString(s.LineageRoot), Anchors: []anchorJSON{}, Trusted: pinOf(s.Pin), Insecure: s.Insecure, Void: s.VoidApprovers,
		Partitions: partitionsOf(s.Partitions),
	}
	for _, p := range s.LostScopes {
		out.LostScopes = append(out.LostScopes, Key(p))
	}
	for _, a := range s.Anchors {
		out.Anchors = append(out.Anchors, anchorJSON{
			ID: hex.EncodeToString(a.Id), Name: a.Name, Peer: a.Peer, Weight: a.Weight, Self: a.Self,
			Reachable: a.Reachable, State: a.State, SilentUntil: a.SilentUntil, Address: a.Address, LastView: a.LastView,
		})
	}
	for _, f := range s.Faulty {
		out.Faulty = append(out.Faulty, hex.EncodeToString(f))
	}
	return out
}

// authorKey is the key with which the node signs the requests of its clients.
func authorKey(s *aweighv1.StatusResponse) string {
	key, ok := scope.PeerKey(s.Peer)
	if !ok {
		return ""
	}
	return key.String()
}
