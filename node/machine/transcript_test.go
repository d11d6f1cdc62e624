package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestTranscripts plays the stories of testdata/transcripts. Each line is one step of a machine: its event, and the
// effects in the order in which they are carried out. The commands:
//
//	new anchors=3 mode=crash leads=(1,0) [epoch=4]   machines that have met and signed nothing; the leaders of the
//	                                     first views; epochs of so many blocks
//	submit 0 key=/a [crash=written|sent] a client's write at anchor 0, which then loses power
//	read 0                               a linearizable read
//	deliver [from=0] [to=1] [kind=v]     frames arrive, each in a step of its own, until none is left
//	lose [from=0] [to=1] [kind=v]        frames are lost
//	forge from=0 to=1 kind=v             the first such frame arrives with its last byte changed
//	tick 1s                              time passes, and each machine is stepped
//	run 8                                so many rounds of deliveries and steps, which are not shown
//	restart 0                            the machine starts from its disk
//	snapshot 2 from=0                    the state of one replaces that of another, as a snapshot does
//	status                               where each machine stands
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var s story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			s.play(t, d)
			return s.out.String()
		})
	})
}

type story struct {
	*drill
	out   strings.Builder
	reads uint64
}

func (s *story) play(t *testing.T, d *datadriven.TestData) {
	at := func() (i int) {
		if _, err := fmt.Sscan(d.CmdArgs[0].Key, &i); err != nil {
			t.Fatal(err)
		}
		return i
	}
	var key, kind, crash string
	d.MaybeScanArgs(t, "key", &key)
	d.MaybeScanArgs(t, "kind", &kind)
	d.MaybeScanArgs(t, "crash", &crash)
	from, to := -1, -1
	d.MaybeScanArgs(t, "from", &from)
	d.MaybeScanArgs(t, "to", &to)
	switch d.Cmd {
	case "new":
		s.start(t, d)
	case "submit":
		s.steps(at(), "a client submits "+key, crash, Submit{Bundle: s.bundle(at(), key)})
	case "read":
		s.reads++
		s.steps(at(), "a client reads", "", Read{ID: s.reads})
	case "deliver":
		for s.frame(from, to, kind, func(i, j int, f []byte) { s.arrive(i, j, f) }) {
		}
	case "lose":
		lost := 0
		for s.frame(from, to, kind, func(int, int, []byte) { lost++ }) {
		}
		fmt.Fprintf(&s.out, "%d lost\n", lost)
	case "forge":
		forged := s.frame(from, to, kind, func(i, j int, f []byte) {
			f = slices.Clone(f)
			f[len(f)-1] ^= 1
			s.arrive(i, j, f)
		})
		if !forged {
			d.Fatalf(t, "no such frame was sent")
		}
	case "tick":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(wait)
		for i := range s.m {
			s.steps(i, "time passes", "")
		}
	case "run":
		s.all(s.everyone(), at())
	case "restart":
		s.restart(at())
		fmt.Fprintf(&s.out, "%s\n", s.stands(at()))
	case "snapshot":
		old := s.m[at()]
		m, err := NewMachine(MachineConfig{Network: s.net}, s.disk[from])
		if err != nil {
			t.Fatal(err)
		}
		s.m[at()], s.disk[at()] = m, s.disk[from]
		s.steps(at(), "a snapshot replaced the state", "", old.Resume()...)
	case "status":
		for i := range s.m {
			fmt.Fprintf(&s.out, "%s\n", s.stands(i))
		}
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
}

func (s *story) start(t *testing.T, d *datadriven.TestData) {
	var anchors int
	var mode string
	var epoch uint64
	d.ScanArgs(t, "anchors", &anchors)
	d.ScanArgs(t, "mode", &mode)
	d.MaybeScanArgs(t, "epoch", &epoch)
	p := scope.OpenPolicy(map[string]quorum.Mode{"bft": quorum.BFT, "crash": quorum.Crash}[mode])
	if epoch > 0 {
		p.EpochBlocks = epoch
	}
	leads, ok := d.Arg("leads")
	if !ok {
		d.Fatalf(t, "a story names the leaders of its first views")
	}
	for seed := 0; s.drill == nil || !s.led(leads.Vals); seed++ {
		s.drill = newDrill(t, fmt.Sprint("story", anchors, mode, seed), anchors, p)
	}
	s.meet(s.everyone())
	s.all(s.everyone(), 4)
	for i := range s.m {
		s.drop(i)
	}
	for v := range leads.Vals {
		fmt.Fprintf(&s.out, "view %d: anchor %d leads\n", v+1, s.leader(aweigh.View(v+1)))
	}
}

// led reports whether the first views are led by the given anchors. Leaders follow from keys and the policy, so the
// keys are drawn until they are right.
func (s *story) led(by []string) bool {
	for v, i := range by {
		if fmt.Sprint(s.leader(aweigh.View(v+1))) != i {
			return false
		}
	}
	return true
}

func (s *story) leader(v aweigh.View) int {
	return slices.IndexFunc(s.m, func(m *Machine) bool { return m.self == s.m[0].engine.Leader(v) })
}

// restart starts a machine from its disk, and connects it again.
func (s *story) restart(i int) {
	sent := s.drill.out[i]
	s.drill.start(i)
	s.drill.out[i] = sent // it is on its way
	for j := range s.m {
		if j != i {
			s.step(j, Parted{Peer: s.peers[i]}, Met{Peer: s.peers[i]})
			s.step(i, Met{Peer: s.peers[j]})
		}
	}
}

func (s *story) everyone() (all []int) {
	for i := range s.m {
		all = append(all, i)
	}
	return all
}

// frame takes the first frame that matches out of what was sent, and reports whether there was one.
func (s *story) frame(from, to int, kind string, use func(i, j int, f []byte)) bool {
	for i := range s.m {
		for n, p := range s.drill.out[i] {
			j := slices.Index(s.peers, p.To)
			if from >= 0 && i != from || to >= 0 && j != to || kind != "" && FrameKind(p.Frame) != kind {
				continue
			}
			s.drill.out[i] = slices.Delete(s.drill.out[i], n, n+1)
			use(i, j, p.Frame)
			return true
		}
	}
	return false
}

// arrive has a frame checked and, if it holds, given to a machine.
func (s *story) arrive(i, j int, f []byte) {
	m, err := s.m[j].Checker().Check(s.peers[i], f)
	if err != nil {
		fmt.Fprintf(&s.out, "%d: %s of %d is refused: %v\n", j, FrameKind(f), i, refusal.Of(err))
		return
	}
	s.steps(j, fmt.Sprintf("%s of %d arrives", FrameKind(f), i), "", Arrived{From: s.peers[i], Message: m})
}

// steps steps a machine, and prints its effects. With a crash it loses power once its records are written, or once its
// frames are sent as well.
func (s *story) steps(i int, what, crash string, events ...Event) {
	s.step(i, events...)
	fx := s.did[i][len(s.did[i])-1]
	var does []string
	if len(fx.Write) > 0 {
		does = append(does, "write"+map[bool]string{true: " and sync"}[fx.Sync])
	}
	written := len(does)
	var kinds []string
	for _, p := range fx.Send {
		if k := FrameKind(p.Frame); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for _, k := range kinds {
		var peers []string
		for _, p := range fx.Send {
			if j := fmt.Sprint(slices.Index(s.peers, p.To)); FrameKind(p.Frame) == k && !slices.Contains(peers, j) {
				peers = append(peers, j)
			}
		}
		slices.Sort(peers)
		does = append(does, fmt.Sprintf("send %s to %s", k, strings.Join(peers, " ")))
	}
	sent := len(does)
	for _, r := range fx.Reply {
		switch {
		case r.Refused != nil:
			does = append(does, fmt.Sprintf("refuse: %v", r.Refused))
		case r.Read > 0:
			does = append(does, fmt.Sprintf("answer read %d as of height %d", r.Read, r.Height))
		default:
			does = append(does, fmt.Sprintf("reply %v in block %d", r.Outcome.Code, r.Height))
		}
	}
	for _, n := range fx.Notes {
		does = append(does, "note "+strings.TrimPrefix(fmt.Sprintf("%T", n), "machine."))
	}
	switch crash {
	case "written":
		if written == 0 || sent == written {
			s.t.Fatalf("%d: %s: no crash is between records and frames, as one of both is missing", i, what)
		}
		does = append(does[:written], "CRASH")
		s.drop(i)
		s.restart(i)
	case "sent":
		if sent == written {
			s.t.Fatalf("%d: %s: no frame is sent before the crash", i, what)
		}
		does = append(does[:sent], "CRASH")
		s.restart(i)
	}
	if len(does) > 0 || len(events) > 0 {
		fmt.Fprintf(&s.out, "%d: %s: %s\n", i, what, strings.Join(does, "; "))
	}
}

func (s *story) stands(i int) string {
	st := s.m[i].Status()
	return fmt.Sprintf("%d: view %d, height %d, epoch %d, revision %d, waiting %d, listening %v",
		i, st.View, st.Head.Height, st.Epoch, st.Head.Revision, st.Waiting, st.Listening)
}
