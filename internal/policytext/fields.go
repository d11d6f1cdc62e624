package policytext

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// field is one number of a policy.
type field struct {
	name  string // section.key
	about string
	show  func(*scope.Policy) string
	read  func(*scope.Policy, string) error
}

// sections say what their fields are about.
var sections = map[string]string{
	"quorum": "Certificates: the share of the whole weight that must be exceeded, and how many\nanchors it takes at least, however heavy they are. Two certificates that contradict\n" +
		"each other must share more weight than may lie (P3 in docs/protocol.md).",
	"epoch":    "When an epoch ends: roster, weights and policy stay as they are within one.",
	"trust":    "How scores (parts per million, 1000000 is full trust) move in an epoch, and what they weigh.",
	"group":    "How many anchors weigh at a time; the others are on standby.",
	"limits":   "What the scope takes.",
	"children": "What binds the scopes below this one, from their founding on.",
	"names":    "What happens to names besides what every scope allows.",
	"topology": "What the scope does about prefixes that are busy, and about those that are quiet again.",
}

var fields = []field{
	{
		name: "quorum.mode", about: "bft and fast: less than a third of the weight may lie, fast takes one round of votes; crash: none lies, and stays",
		show: func(p *scope.Policy) string { return p.Rules.Mode.String() },
		read: func(p *scope.Policy, text string) (err error) {
			p.Rules.Mode, err = quorum.ParseMode(text)
			return err
		},
	},
	share("quorum.notarize", "to extend the chain", func(p *scope.Policy) *quorum.Rule { return &p.Rules.Notarize }),
	share("quorum.finalize", "to make a block final, and to carry a decision", func(p *scope.Policy) *quorum.Rule { return &p.Rules.Finalize }),
	share("quorum.nullify", "to give up a view whose leader is silent", func(p *scope.Policy) *quorum.Rule { return &p.Rules.Nullify }),
	number("quorum.notarize_anchors", "anchors at least; 0: weight alone decides", func(p *scope.Policy) *uint32 { return &p.Rules.Notarize.MinAnchors }),
	number("quorum.finalize_anchors", "likewise", func(p *scope.Policy) *uint32 { return &p.Rules.Finalize.MinAnchors }),
	number("quorum.nullify_anchors", "likewise", func(p *scope.Policy) *uint32 { return &p.Rules.Nullify.MinAnchors }),

	number("epoch.blocks", "after so many blocks", func(p *scope.Policy) *uint64 { return &p.EpochBlocks }),
	duration("epoch.time", "or after so long, if it holds eight blocks; 0s: the clock ends none", func(p *scope.Policy) *time.Duration { return &p.EpochTime }),

	number("trust.floor", "weight of score 0, before caps", func(p *scope.Policy) *uint64 { return &p.Trust.Floor }),
	number("trust.ceiling", "weight of full trust, before caps", func(p *scope.Policy) *uint64 { return &p.Trust.Ceiling }),
	number("trust.initial", "score of a new anchor, and the most with which one returns", func(p *scope.Policy) *trust.Score { return &p.Trust.Initial }),
	number("trust.gain", "gained for an epoch of full participation", func(p *scope.Policy) *trust.Score { return &p.Trust.Gain }),
	number("trust.decay", "every epoch, one part in so many of the score is lost", func(p *scope.Policy) *uint32 { return &p.Trust.Decay }),
	number("trust.absence", "for an epoch of absence, one part in so many of the score", func(p *scope.Policy) *uint32 { return &p.Trust.Absence }),
	number("trust.rest", "decay and absence bring no score below this", func(p *scope.Policy) *trust.Score { return &p.Trust.Rest }),
	number("trust.lead", "most that is gained in an epoch by leading well", func(p *scope.Policy) *trust.Score { return &p.Trust.Lead }),
	number("trust.idle", "most that is lost in an epoch by views led that gave nothing", func(p *scope.Policy) *trust.Score { return &p.Trust.Idle }),
	number("trust.whole", "blocks that make a whole epoch; fewer earn and cost less in proportion", func(p *scope.Policy) *uint32 { return &p.Trust.Whole }),
	number("trust.blame", "ballots on motions take at most one part in so many of a weight; 16 or more", func(p *scope.Policy) *uint32 { return &p.Trust.Blame }),
	number("trust.with", "ballots with the outcomes of contested motions take one part in so many of the blame in an epoch", func(p *scope.Policy) *uint32 { return &p.Trust.With }),
	number("trust.against", "ballots against them add one part in so many of what is missing to full blame", func(p *scope.Policy) *uint32 { return &p.Trust.Against }),
	number("trust.silent", "silence adds one part in so many of what is missing to half of full blame", func(p *scope.Policy) *uint32 { return &p.Trust.Silent }),
	number("trust.judged", "contested motions that make a whole epoch; fewer move blame less in proportion", func(p *scope.Policy) *uint32 { return &p.Trust.Judged }),
	ratio("trust.contest", "weight that the losing side of a contested motion holds at least, up to 1/2", func(p *scope.Policy) *trust.Ratio { return &p.Trust.Contest }),
	ratio("trust.answer", "part of a motion's window after which silence counts", func(p *scope.Policy) *trust.Ratio { return &p.Trust.Answer }),
	number("trust.reversal", "for so many epochs a motion that is reversed credits the anchors that had warned of it, up to 64; 0: never", func(p *scope.Policy) *uint32 { return &p.Trust.Reversal }),
	ratio("trust.share", "most of the whole weight that one anchor holds, below 1/3; auto: by the number of anchors", func(p *scope.Policy) *trust.Ratio { return &p.Trust.Share }),
	ratio("trust.sponsored", "most that the anchors of one sponsor hold together, below 1/3", func(p *scope.Policy) *trust.Ratio { return &p.Trust.Sponsored }),
	ratio("trust.churn", "most by which all weights together change in an epoch", func(p *scope.Policy) *trust.Ratio { return &p.Trust.Churn }),
	number("trust.probation", "epochs in which a new anchor votes and weighs 0", func(p *scope.Policy) *uint32 { return &p.Trust.Probation }),
	number("trust.surety", "a sponsor loses one part in so many of its score when one it brought in lies", func(p *scope.Policy) *uint32 { return &p.Trust.Surety }),
	number("trust.surety_epochs", "for so many epochs after the admission", func(p *scope.Policy) *uint32 { return &p.Trust.SuretyEpochs }),

	number("group.least", "anchors that weigh at a time, at least; 4 or more unless none lies", func(p *scope.Policy) *uint32 { return &p.Trust.Group.Least }),
	number("group.most", "at most; 0: all anchors past probation weigh, and the others are 0", func(p *scope.Policy) *uint32 { return &p.Trust.Group.Most }),
	number("group.tolerates", "anchors that may fail at a time; each that was proven to lie while it weighed adds one for trust.surety_epochs", func(p *scope.Policy) *uint32 { return &p.Trust.Group.Tolerates }),
	number("group.load", "for each so many changes in an epoch one more anchor weighs; 0: load changes nothing", func(p *scope.Policy) *uint64 { return &p.Trust.Group.Load }),
	number("group.replace", "epochs of absence after which an anchor on standby takes the place; 0: absence costs scores alone", func(p *scope.Policy) *uint32 { return &p.Trust.Group.Replace }),

	duration("limits.valid_for", "how long a mutation may wait for a quorum, at most", func(p *scope.Policy) *time.Duration { return &p.Limits.ValidFor }),
	duration("limits.pending", "how long a mutation under approval may wait for a quorum, at most, if that is longer: up to 2160h; 0s: no longer", func(p *scope.Policy) *time.Duration { return &p.Limits.Pending }),
	size("limits.scope_bytes", "of all versions of keys that are kept (such as 500MiB), from which on puts are refused; 0: any number", func(p *scope.Policy) *int64 { return &p.Limits.ScopeBytes }),
	number("limits.rate", "changes a second that a node takes of its own clients, more wait for their turn; 0: any number", func(p *scope.Policy) *int64 { return &p.Limits.Rate }),
	duration("limits.ttl", "for which nodes that do not hold the scope may give an answer of its anchors again; 0s: not at all", func(p *scope.Policy) *time.Duration { return &p.Limits.TTL }),
	number("limits.block_cost", "units of work, of about a microsecond each, that the requests of a block declare together, at most; one alone may declare as much", func(p *scope.Policy) *int64 { return &p.Limits.BlockCost }),
	number("limits.anchors", "in a roster, at most", func(p *scope.Policy) *int { return &p.Limits.Anchors }),
	duration("limits.drift", "how far a block's time may be ahead of the clock of an anchor that votes for it", func(p *scope.Policy) *time.Duration { return &p.Limits.Drift }),
	size("limits.key_bytes", "of a key, at most", func(p *scope.Policy) *int { return &p.Limits.KeyBytes }),
	size("limits.value_bytes", "of a value, at most", func(p *scope.Policy) *int { return &p.Limits.ValueBytes }),
	size("limits.mutation_bytes", "of one request to change something, at most", func(p *scope.Policy) *int { return &p.Limits.MutationBytes }),
	size("limits.bundle_bytes", "of the requests that one author signs together, at most", func(p *scope.Policy) *int { return &p.Limits.BundleBytes }),
	size("limits.block_bytes", "of all requests of a block, at most", func(p *scope.Policy) *int { return &p.Limits.BlockBytes }),
	number("limits.block_mutations", "requests in a block, at most", func(p *scope.Policy) *int { return &p.Limits.BlockMutations }),
	number("limits.txn_ops", "compares of a transaction, and operations of each of its branches, at most", func(p *scope.Policy) *int { return &p.Limits.TxnOps }),
	number("limits.txn_depth", "levels of transactions within a transaction, at most", func(p *scope.Policy) *int { return &p.Limits.TxnDepth }),
	size("limits.justification_bytes", "of the reason that a request gives, at most", func(p *scope.Policy) *int { return &p.Limits.JustificationBytes }),

	{
		name: "topology.split", about: "advise: aweigh scope topology tells which prefix should be a scope of its own; act: it becomes one; off: nothing is counted",
		show: func(p *scope.Policy) string { return p.Topology.Split.String() },
		read: func(p *scope.Policy, text string) (err error) {
			p.Topology.Split, err = scope.ParseConduct(text)
			return err
		},
	},
	number("topology.rate", "changes a second, in the mean of an epoch, from which on a prefix is busy; up to 1000000", func(p *scope.Policy) *uint32 { return &p.Topology.Rate }),
	number("topology.epochs", "for which it must be busy, in a row", func(p *scope.Policy) *uint32 { return &p.Topology.Epochs }),
	number("topology.rest", "epochs between two splits, at least", func(p *scope.Policy) *uint32 { return &p.Topology.Rest }),
	number("topology.most", "scopes that it has split off by itself, at a time", func(p *scope.Policy) *uint32 { return &p.Topology.Most }),
	{
		name: "topology.fold", about: "act: a scope that split off by itself goes back to the one above once it is quiet; advise: aweigh scope topology tells when it could; off: never",
		show: func(p *scope.Policy) string { return p.Topology.Fold.String() },
		read: func(p *scope.Policy, text string) (err error) {
			p.Topology.Fold, err = scope.ParseConduct(text)
			return err
		},
	},
	duration("topology.quiet", "for which it must have less than half of topology.rate; 1s to 8760h", func(p *scope.Policy) *time.Duration { return &p.Topology.Quiet }),

	truth("names.transfers", "experimental: whether aliases move to other scopes, and come from there, with their objects", func(p *scope.Policy) *bool { return &p.Transfers }),

	number("children.depth", "levels of scopes below, at most; 0: any number", func(p *scope.Policy) *uint32 { return &p.Children.Depth }),
	truth("children.bft", "whether none of them may be of mode crash, which takes an anchor's word", func(p *scope.Policy) *bool { return &p.Children.BFT }),
	atLeast("children.finalize", "to make their blocks final; any: as they like", func(p *scope.Policy) *quorum.Rule { return &p.Children.Finalize }),
	number("children.finalize_anchors", "and so many anchors, at least", func(p *scope.Policy) *uint32 { return &p.Children.Finalize.MinAnchors }),
	duration("children.notice", "after which those founded from now on can be given other anchors and another policy, or be taken back; 0s: never", func(p *scope.Policy) *time.Duration { return &p.Children.Notice }),
}

func find(name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

// number is a field with a whole number of at least 0.
func number[N int | int64 | uint32 | uint64 | trust.Score](name, about string, in func(*scope.Policy) *N) field {
	return field{
		name: name, about: about,
		show: func(p *scope.Policy) string { return fmt.Sprint(*in(p)) },
		read: func(p *scope.Policy, text string) error {
			n, err := strconv.ParseUint(text, 10, 63)
			if err != nil || uint64(N(n)) != n || N(n) < 0 {
				return fmt.Errorf("%q is not a whole number from 0 on, or too large", text)
			}
			*in(p) = N(n)
			return nil
		},
	}
}

// units are those of sizes.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// size is a field with a number of bytes.
func size[N int | int64](name, about string, in func(*scope.Policy) *N) field {
	return field{
		name: name, about: about,
		show: func(p *scope.Policy) string { return Size(int64(*in(p))) },
		read: func(p *scope.Policy, text string) error {
			n, err := ParseSize(text)
			if err == nil && int64(N(n)) != n {
				err = fmt.Errorf("%q is too large", text)
			}
			if err != nil {
				return err
			}
			*in(p) = N(n)
			return nil
		},
	}
}

// truth is a field that is true or false.
func truth(name, about string, in func(*scope.Policy) *bool) field {
	return field{
		name: name, about: about,
		show: func(p *scope.Policy) string { return fmt.Sprint(*in(p)) },
		read: func(p *scope.Policy, text string) error {
			v, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", text)
			}
			*in(p) = v
			return nil
		},
	}
}

// atLeast is a share that may be left open.
func atLeast(name, about string, in func(*scope.Policy) *quorum.Rule) field {
	f := share(name, about, in)
	show, read := f.show, f.read
	f.show = func(p *scope.Policy) string {
		if in(p).Den == 0 {
			return "any"
		}
		return show(p)
	}
	f.read = func(p *scope.Policy, text string) error {
		if text == "any" {
			in(p).Num, in(p).Den = 0, 0
			return nil
		}
		return read(p, text)
	}
	return f
}

func duration(name, about string, in func(*scope.Policy) *time.Duration) field {
	return field{
		name: name, about: about,
		show: func(p *scope.Policy) string { return in(p).String() },
		read: func(p *scope.Policy, text string) (err error) {
			*in(p), err = span(text)
			return err
		},
	}
}

// span reads a length of time.
func span(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		err = fmt.Errorf("%q is not a length of time, like 72h or 1h30m; hours are the largest unit", text)
	}
	return d, err
}

// part reads a part of a whole, like 2/3.
func part(text string) (num, den uint32, err error) {
	above, below, ok := strings.Cut(text, "/")
	n, err1 := strconv.ParseUint(strings.TrimSpace(above), 10, 32)
	d, err2 := strconv.ParseUint(strings.TrimSpace(below), 10, 32)
	if !ok || err1 != nil || err2 != nil || d == 0 {
		return 0, 0, fmt.Errorf("%q is not a part of a whole, like 2/3", text)
	}
	return uint32(n), uint32(d), nil
}

func share(name, about string, in func(*scope.Policy) *quorum.Rule) field {
	return field{
		name: name, about: "more than this, " + about,
		show: func(p *scope.Policy) string { return fmt.Sprintf("%d/%d", in(p).Num, in(p).Den) },
		read: func(p *scope.Policy, text string) error {
			n, d, err := part(text)
			if err == nil {
				in(p).Num, in(p).Den = uint64(n), uint64(d)
			}
			return err
		},
	}
}

// ratio is a field of package trust, of which 0/0 is "auto".
func ratio(name, about string, in func(*scope.Policy) *trust.Ratio) field {
	return field{
		name: name, about: about,
		show: func(p *scope.Policy) string {
			if *in(p) == (trust.Ratio{}) {
				return "auto"
			}
			return in(p).String()
		},
		read: func(p *scope.Policy, text string) error {
			if text == "auto" {
				*in(p) = trust.Ratio{}
				return nil
			}
			n, d, err := part(text)
			if err == nil {
				*in(p) = trust.Ratio{Num: n, Den: d}
			}
			return err
		},
	}
}
