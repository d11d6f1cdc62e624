package sim

// Named is something that a scenario or a report can name.
type Named struct{ Name, About string }

// Plays are the ways to lie, for Role.Play.
var Plays = []Named{
	{"equivocate", "votes for one block before some and for another before others, and proposes two"},
	{"twins", "runs twice on one key; both think that they are honest"},
	{"fork", "runs twice on one key, each half talking to one half of the honest, to make each half commit another block"},
	{"rival", "when it leads, proposes a rival to the last block instead of a block on top of it"},
	{"withhold", "keeps its ballots and proposals from its victims"},
	{"mute", "follows, and says nothing"},
	{"delay", "sends its ballots and proposals just before or just after the others give up"},
	{"replay", "sends again what anybody ever sent, to anyone"},
	{"garbage", "proposes invalid blocks, and sends frames that are cut short or changed"},
	{"censor", "drops what its victims' clients submit, and answers none of its victims' questions"},
	{"rewrite", "answers those that catch up with another history, false finality, or heights that do not exist"},
	{"clock", "proposes blocks as far in the future as goes, and farther"},
	{"flood", "sends as many frames as it can, valid ones among them"},
	{"stale", "answers reads with the oldest block that it can prove, and denies what it holds"},
	{"slander", "signs in others' names, and makes up proofs of fault and certificates"},
	{"amnesia", "restarts again and again without its record of what it signed"},
	{"defeat", "gives up every view at once"},
	{"shirk", "keeps its ballots to finalize to itself"},
	{"omit", "when it leads, leaves its victims' ballots out of the record from which trust is reckoned"},
	{"sybil", "brings in identities of its own, each on a member's surety"},
	{"whitewash", "leaves when its trust has fallen, and applies again, as another if it can"},
	{"farm", "writes without end, so that epochs end as often as they can"},
	{"usurp", "signs other ends of past epochs with the keys that sat in them, and hands over to itself"},
	{"bury", "takes no ballots on motions, so that none are in its blocks, and passes none on"},
	{"bothways", "approves every motion before some and rejects it before others, and goes on when it is barred"},
	{"stuff", "fills ballot boxes with votes on motions that nobody proposed"},
	{"counterfeit", "hands on ballots of other networks, in others' names, of strangers, and cut short"},
	{"heckle", "breaks meetings of ballot boxes with messages that are cut short, changed or not asked for"},
}

// FaultKinds are the kinds of faults that befall a world, for Fault.Kind.
var FaultKinds = []Named{
	{"partition", "the sides do not hear each other"},
	{"cut", "nodes are off the network"},
	{"clog", "what is sent to or from nodes waits, and comes at once when the fault ends"},
	{"swizzle", "nodes are clogged one after another, and freed in another order"},
	{"eclipse", "nodes hear only those who lie"},
	{"crash", "nodes die, losing what was not synced, and restart when the fault ends"},
	{"churn", "nodes die and restart again and again"},
	{"rollback", "nodes die, and restart on the disk as it was when the fault began: they count as faulty"},
	{"full", "the disk takes no more writes: nodes stop, and restart when there is room"},
	{"slow", "each sync takes long"},
	{"readfail", "one read fails: nodes stop, and restart at the end"},
	{"syncfail", "one sync fails after the write: nodes stop, and restart at the end"},
	{"forgetful", "the disk says that it synced, and did not: nodes count as faulty; they die when the fault ends"},
	{"offset", "clocks are off by a constant"},
	{"drift", "clocks run too fast or too slowly"},
	{"step", "clocks jump, and jump back"},
}

// MotionKinds are the changes of membership and policy, for Motion.Kind.
var MotionKinds = []Named{
	{"admit", "an observer becomes an anchor"},
	{"retire", "an anchor leaves by itself"},
	{"evict", "the others let an anchor go"},
	{"policy", "epochs become longer or shorter"},
}

// Invariants are what is watched in every run. They hold of honest nodes, as
// long as those who are faulty weigh no more than the fault budget; beyond it,
// nobody is excused.
var Invariants = []Named{
	{"agreement", "no two nodes make different blocks final at one height (P16)"},
	{"validity", "final blocks follow from execution, and hold authentic mutations, each once (P13, P21, P22)"},
	{"certificates", "behind every final block stand raw ballots of enough weight, counted afresh (P4, P6)"},
	{"ballots", "one ballot for one slot, over all lives of a node (P7, P8)"},
	{"roster", "at one epoch all have the same anchors, weights and rules (P1, P24)"},
	{"honour", "no proof of fault appears against an honest anchor (P36)"},
	{"accountability", "if agreement breaks, ballots on hand prove more than the budget at fault (P36)"},
	{"lineage", "the log of every node only grows, and proves what it holds, on all nodes alike"},
	{"identity", "the UID of an object stays while its name or value changes, and is the same everywhere"},
	{"linearizable", "reads and writes of all clients fit one order in time (P23)"},
	{"durable", "what was acknowledged stands, with the same outcome, whatever crashed (P8)"},
	{"acceptance", "no honest frame is refused by the checks of an honest receiver"},
	{"caps", "no anchor's weight, and no sponsor's anchors together, exceed their share (trust.Params)"},
	{"churn", "the weights of one epoch differ from those of the one before by no more than policy allows"},
	{"standing", "scores move within their bounds, and nobody honest is ever barred"},
	{"third", "liars that begin below a quarter of the weight and of the heads never reach a third"},
	{"ending", "nothing but empty blocks follows in an epoch on the block that ends it (P25)"},
	{"bounded", "no queue of a node exceeds its bound"},
	{"sound", "no machine meets a state that must not be"},
	{"motions", "motions open where policy asks for approval, and end as the ballots in final blocks say, counted afresh (P28, P31, P33)"},
	{"conflicts", "of motions that change one key and were open at once, one is applied at most (P32)"},
	{"closed", "what became of a motion never changes, and is the same at all nodes (P31, P34)"},
	{"boxes", "a ballot that was taken is in the chain, waits in the box, or was too late (P30, P35)"},
}

// GoalNames are what runs are meant to reach: a sweep that never did has proven
// less than it seems.
var GoalNames = []Named{
	{"nullified view", "a view ended without a block"},
	{"proven equivocator", "a proof of fault stands in a final block"},
	{"epoch change", "an epoch ended and another began"},
	{"epoch change under fire", "an epoch ended while liars lied or faults lasted"},
	{"trust moved", "an anchor's score was another in the next epoch"},
	{"barred liar", "an epoch began without an anchor that was proven to lie"},
	{"motion ordered", "an approval stands in a final block"},
	{"new anchor", "an anchor that was admitted has weight"},
	{"anchor left", "an anchor retired or was evicted"},
	{"two proposals", "a leader proposed two blocks in one view"},
	{"refused proposal", "an honest node found a proposal invalid"},
	{"refused frame", "an honest node refused a frame"},
	{"crash before send", "a node died between making a ballot durable and sending it"},
	{"lost writes", "a crash took back commits that were not synced"},
	{"lost record", "a node found that it had lost its record, and signed no more (P9)"},
	{"failed disk", "a node stopped because its disk failed"},
	{"catch up", "a node fetched final blocks that it had missed"},
	{"minimal certificate", "a finalization that no signature could be taken from"},
	{"chained finality", "a block became final through a later one"},
	{"no quorum", "nothing became final for three view timeouts although work waited"},
	{"read under fire", "a linearizable read was answered while faults lasted"},
	{"compare failed", "a compare-and-swap lost against another"},
	{"late again", "a client asked again for what had been done, and got the first answer"},
	{"skewed clock", "a block was refused, or waited, because clocks disagree"},
	{"motion opened", "a change waited for approval"},
	{"motion carried", "a motion had the approvals, and was applied"},
	{"motion rejected", "a motion could not have the approvals any more"},
	{"motion expired", "the deadline of a motion came first"},
	{"motion void", "a motion had the approvals, and something else had changed its keys"},
	{"motion withdrawn", "the author of a motion withdrew it"},
	{"ballot taken", "an honest node took a ballot on a motion"},
	{"early ballot", "a ballot was taken before its motion opened"},
	{"late ballot", "a ballot was recorded after its motion had closed"},
	{"two choices", "a voter's approval and rejection of one motion are both in final blocks"},
	{"barred voter", "an honest node refused a ballot of one who may not vote"},
	{"healed", "progress was possible after the faults, and came"},
}
