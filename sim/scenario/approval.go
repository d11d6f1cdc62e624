package scenario

import "time"

// Approval holds the motions, the voters and their votes (P28 to P35). Changes of
// keys below Prefix open motions. The voters are the honest anchors, and approvers:
// they sign ballots, and couriers hand them in at nodes, in any order.
type Approval struct {
	Motions int           `yaml:"motions,omitempty"` // asked for, in all; 0: the policy asks for no approval
	Share   Share         `yaml:"share,omitempty"`   // of the whole weight that must approve; 1/2
	Anchors int           `yaml:"anchors,omitempty"` // and how many anchors must; 0
	Window  time.Duration `yaml:"window,omitempty"`  // how long a motion stays open; 1h
	Pending time.Duration `yaml:"pending,omitempty"` // how long it may wait for the block that opens it, if that is longer than for other changes; 0

	Approvers int   `yaml:"approvers,omitempty"` // keys without a node that vote as well; 0
	Weight    Share `yaml:"weight,omitempty"`    // of each, of that of all anchors together; 1/10
	Required  int   `yaml:"required,omitempty"`  // of them, the first, that are required; 0
	Fickle    int   `yaml:"fickle,omitempty"`    // of them, the last, that sign both an approval and a rejection; 0

	StepUp bool  `yaml:"step_up,omitempty"` // one approver decides, and anchors do not vote: no share, anchors, weight and required
	Own    Share `yaml:"own,omitempty"`     // of a step-up's motions, that an approver asks for; 0

	Keys     int   `yaml:"keys,omitempty"`     // that motions are about: of few, many conflict; 3
	Withdraw Share `yaml:"withdraw,omitempty"` // of the motions, that their authors withdraw; 0
	Undo     Share `yaml:"undo,omitempty"`     // of the motions, that delete what an earlier one puts, and are asked for up to 2s after it; 0
	Against  Share `yaml:"against,omitempty"`  // of the ballots, that reject; 0
	Absent   Share `yaml:"absent,omitempty"`   // of the ballots, that are never signed; 0

	Early   Share         `yaml:"early,omitempty"`   // of the ballots, handed in up to 2s before their motion is asked for; 0
	Offline Share         `yaml:"offline,omitempty"` // of the ballots, that are up to Delay on their way, at the longest until the faults are over; 0
	Delay   time.Duration `yaml:"delay,omitempty"`   // 1m
	Nodes   int           `yaml:"nodes,omitempty"`   // at which each ballot is handed in; 1
	Lost    Share         `yaml:"lost,omitempty"`    // of the couriers, that come only when the faults are over; 0
	Twice   Share         `yaml:"twice,omitempty"`   // of the couriers, that come again, up to 2s later; 0
}

func (a *Approval) defaults() {
	if a.Motions == 0 {
		return
	}
	if !a.StepUp {
		or(&a.Share, Whole/2)
		or(&a.Weight, Whole/10)
	}
	or(&a.Window, time.Hour)
	or(&a.Keys, 3)
	or(&a.Delay, time.Minute)
	or(&a.Nodes, 1)
}

const (
	mostAsked     = 200 // motions
	mostApprovers = 32
)

// approval checks the motions and voters.
func (c *checker) approval(s Scenario) {
	a := s.Approval
	if a.Motions == 0 {
		c.need(a == Approval{}, "approval", "nothing is put to the vote: say motions")
		return
	}
	c.within("approval.motions", a.Motions, 1, mostAsked)
	for _, of := range []struct {
		path  string
		share Share
	}{
		{"share", a.Share}, {"weight", a.Weight}, {"withdraw", a.Withdraw}, {"undo", a.Undo}, {"against", a.Against}, {"absent", a.Absent},
		{"early", a.Early}, {"offline", a.Offline}, {"lost", a.Lost}, {"twice", a.Twice}, {"own", a.Own},
	} {
		c.share("approval."+of.path, of.share)
	}
	c.within("approval.anchors", a.Anchors, 0, s.Network.Anchors)
	c.within("approval.approvers", a.Approvers, 0, mostApprovers)
	c.within("approval.required", a.Required, 0, a.Approvers)
	c.within("approval.fickle", a.Fickle, 0, a.Approvers)
	c.need(!a.StepUp || a.Approvers > 0, "approval.step_up", "one approver decides, and there are none: say approvers")
	c.need(!a.StepUp || a.Share == 0 && a.Anchors == 0 && a.Weight == 0 && a.Required == 0, "approval.step_up", "one approver decides, whatever share, anchors, weight and required say")
	c.need(!a.StepUp || a.Window <= time.Hour, "approval.window", "%v is more than an hour, for a step-up", a.Window)
	c.need(a.StepUp || a.Own == 0, "approval.own", "approvers ask for motions in a step-up alone")
	c.within("approval.keys", a.Keys, 1, maxKeys)
	c.within("approval.nodes", a.Nodes, 1, s.Network.Anchors+s.Network.Observers)
	c.period("approval.window", a.Window)
	c.need(a.Window >= time.Second, "approval.window", "%v is less than a second", a.Window)
	c.period("approval.delay", a.Delay)
	c.period("approval.pending", a.Pending)
}

// pending lets the motions of half of the worlds wait for longer than other changes.
func (d drawing) pending(s *Scenario) {
	if s.Approval.Motions > 0 && d.one(2) {
		s.Approval.Pending = 11*time.Minute + time.Duration(d.IntN(120))*time.Minute
	}
}

// undo lets motions of a third of the worlds with motions undo each other.
func (d drawing) undo(s *Scenario) {
	if s.Approval.Motions > 0 && d.one(3) {
		s.Approval.Undo = d.share(800_000)
	}
}

// stepUp makes the approval of a third of the worlds with motions a step-up. A decision about its share ends it.
func (d drawing) stepUp(s *Scenario) {
	a := &s.Approval
	if a.Motions == 0 || !d.one(3) {
		return
	}
	a.StepUp, a.Share, a.Anchors, a.Weight, a.Required = true, 0, 0, 0, 0
	a.Approvers, a.Own = 1+d.IntN(3), d.share(700_000)
	a.Fickle = min(a.Fickle, a.Approvers)
}
