package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestBoundsStandInTables: a number or period that bounds what a node keeps, does or waits for stands in the table of
// its package, where simulated worlds make it small, and nothing but the table reads it; or it has a reason to stand
// alone.
func TestBoundsStandInTables(t *testing.T) {
	holds(t, boundsInTables)
	finds(t, boundsInTables, map[string]string{
		"scope/bounds.go": `package scope
			func DefaultBounds() Bounds { return Bounds{A: maxA, B: maxB} }`,
		"scope/a.go": `package scope
			const maxA, maxB, maxNew = 10, 20 << 10, 3*time.Second
			const Name, Letter = "name", 'l'
			type Kind uint8
			const First Kind = 1
			const (
				Second Kind = iota
				Third
			)
			func f(n int) bool { return n > maxA }`,
	},
		"scope/a.go:2: maxNew is in no table of bounds",
		"scope/a.go:10: maxA stands in the table of bounds, which is to be asked for it",
	)
}

// bounded are the packages with tables of bounds, or whose bounds stand in those of others.
var bounded = []string{"scope", "lineage", "quorum", "node/machine", "node/referral", "votes", "votes/box", "votes/reconcile", "trust", "alias", "action"}

// boundsInTables finds constants that look like bounds, and are neither in a table nor in boundsApart; and
// those that are in a table and are read past it.
func boundsInTables(t *tree) (offences []string) {
	tabled, constants := make(map[string]bool), make(map[string]bool)
	declared := make(map[*ast.Ident]bool)
	var files []*file
	for _, f := range t.files {
		if !f.pure() || !slices.Contains(bounded, f.folder()) {
			continue
		}
		table := path.Base(f.path) == "bounds.go"
		if !table {
			files = append(files, f)
		}
		for _, n := range quantities(f.syntax) {
			constants[f.folder()+"."+n.Name], declared[n] = true, true
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && table {
				tabled[f.folder()+"."+id.Name] = true
			}
			return true
		})
	}
	for _, f := range files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				declared[n.Sel] = true // of something else
			case *ast.FuncDecl:
				declared[n.Name] = true
			}
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			switch name := f.folder() + "." + id.Name; {
			case declared[id] && constants[name] && !tabled[name] && boundsApart[name] == "":
				offences = append(offences, fmt.Sprintf("%s: %s is in no table of bounds; put it there, or say in boundsApart why not", t.at(id.Pos()), id.Name))
			case !declared[id] && constants[name] && tabled[name] && boundsRead[name] == "":
				offences = append(offences, fmt.Sprintf("%s: %s stands in the table of bounds, which is to be asked for it", t.at(id.Pos()), id.Name))
			}
			return true
		})
	}
	return offences
}

// quantities are the constants of a file that may be bounds: numbers and periods, but no letters, and no values of a
// type of their own, which count up kinds.
func quantities(f *ast.File) (names []*ast.Ident) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, n := range v.Names {
				if i < len(v.Values) && quantity(v.Type, v.Values[i]) {
					names = append(names, n)
				}
			}
		}
	}
	return names
}

func quantity(kind, value ast.Expr) bool {
	if id, ok := kind.(*ast.Ident); ok && id.Name != "int" && id.Name != "int64" && id.Name != "uint64" {
		return false
	}
	if l, ok := value.(*ast.BasicLit); ok && (l.Kind == token.STRING || l.Kind == token.CHAR) {
		return false
	}
	return !strings.Contains(types.ExprString(value), "iota")
}

// boundsRead are bounds that are read past their table, and why.
var boundsRead = reasons(map[string]string{
	"another bound is as large":                               "scope.maxLeaseKeys scope.maxLeaseBytes",
	"a block's encoding has room for the largest":             "scope.MaxAttendedBytes scope.MaxBallotBytes",
	"what is read back was stored with any bound up to this":  "lineage.entriesInRun",
	"the checks of frames, which know no node's own bounds":   "node/machine.MaxNames node/machine.MaxBlocks node/machine.maxCastBytes",
	"an error that is compared names its value in production": "scope.MaxAliases scope.maxRedirects scope.maxTransfers scope.mostWalked",
})

// boundsApart are constants that are in no table, and why.
var boundsApart = reasons(map[string]string{
	"how much of a tree is made at once, which changes no root":                                "scope.rebuiltAtOnce",
	"of mode fast: anchors must agree on the one, and by the other whether a view may be left": "quorum.exactLying quorum.spare",
	"of what a report lists, which is signed and is the same for all readers": "scope.maxTouched scope.maxTouchedBytes scope.maxSeats scope.maxAsked " +
		"scope.maxFlips scope.maxReformText scope.maxFlipQueries",
	"format: encodings and hashes depend on it": "scope.Format scope.scopeBytes scope.revBytes " +
		"scope.userKey scope.escape scope.escapeZero scope.escapeEnd scope.longestTombstone scope.leastCompare scope.leastOp scope.leastReach scope.timeStep scope.ofIsland " +
		"votes.Format votes.majorUint votes.majorBytes votes.majorArray votes.majorNegative votes.majorText votes.majorMap votes.simpleTrue votes.tagSign1 " +
		"votes.labelAlgorithm votes.labelContentType votes.labelKeyID votes.EdDSA votes.COSEMLDSA65 votes.markFloor votes.markLost votes.cosigned " +
		"votes/reconcile.format votes/reconcile.saltSize votes/reconcile.sumSize votes/reconcile.nameSize votes/reconcile.sizeEmpty votes/reconcile.sizeHeads " +
		"votes/reconcile.sizeSplit votes/reconcile.sizeList votes/reconcile.fanout votes/reconcile.maxDepth votes/reconcile.leafSize " +
		"node/referral.AskLook node/referral.AskResolve node/referral.AskSubmit node/referral.AskProve node/referral.AskReferrals node/referral.AskHistory node/referral.AskJudge node/referral.AskOutcome node/referral.AskEvents node/referral.AskProveRange node/referral.AskReceive",
	"of what signatures, messages and files may hold, which is checked before a state is known": "scope.MaxProofs scope.overhead scope.maxRevocation " +
		"scope.maxDecisions scope.maxAttested scope.maxAnchorName scope.maxPeerName scope.MaxDescendants scope.MaxProofBytes scope.MaxRangeLeaves scope.maxWay scope.maxHeldKeys scope.maxHeldBytes " +
		"scope.MaxCaller scope.MaxGrants scope.MaxReach scope.MaxKeepAlives scope.maxAccess scope.maxAccessName scope.MaxHashCost scope.maxTxnFactor scope.mostReserve scope.maxReceipts scope.mostUsages " +
		"scope.MaxRedirect scope.MaxLeaseTTL scope.MinLeaseTTL scope.maxRejoinBundles scope.maxRejoinHandovers scope.maxRejoinSigned scope.maxSentKey scope.maxSentReason scope.MaxTransfer scope.receivedBytes scope.asideAnEntry scope.maxHomeParts " +
		"votes.MaxBallot votes.MaxComment votes.MaxMotionBallot votes.maxSignature votes.MaxApprovers votes/box.MaxReasons votes/reconcile.MinMessage " +
		"lineage.MaxSize lineage.maxPath alias.MaxKey alias.MaxSegments alias.MaxAction " +
		"node/machine.maxEarly node/machine.maxOffered node/machine.maxCast node/machine.maxMeeting node/machine.meetRounds node/machine.HandoversAtOnce node/referral.maxReferrals",
	"of which path a scope splits off (P64)": "scope.leastLeft scope.failedRests",
	"of what a policy or a genesis may say": "scope.maxApprovals scope.mostBound scope.maxApprovalVerbs scope.maxApprovers scope.maxAuthors scope.maxAuthorPrefixes scope.maxAuthorVerbs scope.maxAuthorName scope.maxRate scope.rateBurst " +
		"scope.maxPartitions scope.leastAfter scope.mostAfter scope.mostGather scope.endless scope.islandPart " +
		"scope.maxShare scope.maxVoid scope.leastWindow scope.mostWindow scope.mostStepUp scope.maxApprovalDen " +
		"scope.MaxSplitRate scope.MinQuiet scope.bringOverhead scope.MaxQuiet scope.leastNotice scope.mostNotice scope.maxPrefix scope.leastEpoch scope.leastGroup scope.leastOfAbsence scope.mostEpoch scope.decisionWindow scope.leastMutation scope.mostBlockBytes " +
		"scope.mostBlockMutations scope.mostTxnOps scope.mostTxnDepth scope.mostPeriod scope.mostPending scope.mostAnchors scope.mostBlockCost scope.leastBlockCost scope.mostDrift " +
		"scope.driftFactor quorum.MaxDen quorum.MaxTotal trust.MaxDen trust.MaxScore trust.MaxReversal trust.leastMissed trust.steps node/machine.FoundingScore " +
		"action.longestNumber action.MaxCost action.MaxValue action.allowance action.MaxRules action.MaxWhen action.MaxParts action.MaxDepth action.MaxLoops",
	"a price, which authors reckon as well": "scope.stepsAVisit scope.lookUnits scope.readBytes scope.givenBytes scope.deleteUnits scope.mutationUnit scope.opUnits scope.grantUnits " +
		"scope.linesAUnit scope.least scope.governUnits scope.delegateUnits scope.withdrawUnits scope.accessUnits scope.rejoinUnits scope.bringUnits scope.carryUnits scope.handoversAtOnce scope.mostHomeAhead scope.homeOverhead node/machine.citedWork",
	"it changes how fast something is, and small values occur anyway": "quorum.fewSeats votes.fewMembers scope.auditBytes scope.entriesAtOnce action.maxPrepared node/machine.keptTerms",
	"of what nodes that hold no scope are told, and keep":             "node/referral.LeastTrust node/referral.failed node/referral.maxCached node/referral.maxCachedBytes node/referral.PairBytes scope.lookBytes node/referral.MaxBytes node/referral.MaxChanges node/referral.HedgeAfter node/referral.tries",
	"a gap of milliseconds that every world has":                      "node/machine.announceGap node/machine.helpGap node/machine.blockGap node/machine.gatherMost node/machine.gatherFew node/machine.patience node/machine.retryIn node/machine.everyone node/machine.passOnAfter",
	"it must exceed what the chain takes, whatever that is":           "node/machine.maxAttends node/machine.maxApplications",
	"no bound": "node/machine.nonMembersShare node/machine.patientShare node/machine.patientOfOne " +
		"node/machine.ownShare node/machine.strangersShare node/machine.strangerOfOne node/machine.memberOfOne node/referral.Farthest",
	"of what the edge tells its own clients again":                "node/machine.tellFor node/machine.toldBytes",
	"of what a list for a person says besides":                    "scope.mostLives",
	"it takes many epochs or many islands, more than a world has": "scope.maxPastTerms scope.patienceOfIslands",
})

// reasons turns lists of names by their reason around.
func reasons(lists map[string]string) map[string]string {
	all := make(map[string]string)
	for reason, names := range lists {
		for name := range strings.FieldsSeq(names) {
			all[name] = reason
		}
	}
	return all
}
