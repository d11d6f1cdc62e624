package tidy

import (
	"regexp"
	"slices"
)

const module = "github.com/aweigh/aweigh"

// Packages are named by their folder; "" is the root.
var (
	base    = []string{"", "internal/canon", "internal/curve", "internal/must", "internal/plain", "internal/refusal", "keytree", "kv"}
	pure    = append(slices.Clip(base), "quorum", "trust", "votes", "lineage", "alias", "action", "scope")
	surface = append(slices.Clip(pure), "node", "client", "api/aweigh", "internal/authn", "internal/certs", "internal/fence",
		"internal/requestlog", "internal/socket")
	held = append(slices.Clip(pure), "internal/lthash", "node/machine", "node/referral") // held to the rules of pure code
)

// directions states what the packages in and below a folder may import of this
// module, besides each other. The longest folder that fits applies; a package
// that no row covers is an error.
var directions = []struct {
	folder string
	may    []string
	reason string
}{
	{"", nil, "the shared vocabulary stands on the standard library alone"},
	{"internal/canon", []string{"internal/refusal"}, "the encoding knows nothing of what it encodes"},
	{"internal/must", nil, "a helper for everyone imports no one"},
	{"internal/plain", nil, "it looks at characters, whatever they name"},
	{"internal/refusal", nil, "classes of reasons, whatever was refused"},
	{"internal/curve", []string{"internal/must"}, "it looks at encodings of points, and knows no keys"},
	{"internal/lthash", []string{"internal/must"}, "it hashes sets of elements, whatever they stand for"},
	{"internal/fence", nil, "it looks at requests of HTTP, whatever they ask for"},
	{"internal/authn", []string{"", "internal/plain"}, "it finds the callers of all surfaces, and uses none"},
	{"internal/requestlog", []string{"", "internal/authn", "kv"}, "it records requests of all surfaces, and uses none"},
	{"internal/socket", nil, "it opens sockets, whatever is served there"},
	{"keytree", []string{""}, "an authenticated map, which knows nothing of what it names"},
	{"kv", []string{""}, "storage as a vocabulary, below all who store"},
	{"quorum", base, "weights and consensus are the lowest decision"},
	{"trust", append(slices.Clip(base), "quorum"), "trust gives weights, and knows no ballots"},
	{"votes", append(slices.Clip(base), "quorum"), "ballots carry votes, and know no trust"},
	{"votes/reconcile", base, "it reconciles sets of names, whatever they name"},
	{"lineage", append(slices.Clip(base), "quorum", "trust", "votes"), "history stands above what it records"},
	{"alias", append(slices.Clip(base), "quorum", "trust", "votes", "lineage"), "names know no scope, so that objects can move"},
	{"action", append(slices.Clip(base), "alias"), "rules about verbs know no state; what they are asked about is given"},
	{"scope", append(slices.Clip(base), "internal/lthash", "quorum", "trust", "votes", "lineage", "alias", "action"), "replicated state uses everything pure"},
	{"store", base, "storage keeps bytes for anyone, and knows no scope"},
	{"p2p", []string{"", "internal/canon", "internal/curve", "internal/must"}, "it moves frames, and knows nothing of votes"},
	{"node/machine", pure, "what one node decides, without a disk, a network or a clock"},
	{"node/referral", append(slices.Clip(pure), "node/machine", "store"), "what scopes elsewhere are asked, without a network or a clock"},
	{"node/admission", append(slices.Clip(pure), "node/machine"), "it limits what peers and clients ask for, and knows no node"},
	{"node/fsck", append(slices.Clip(pure), "node/machine"), "it reads a store and runs no node, so simulations need none"},
	{"node", append(slices.Clip(pure), "store", "p2p"), "what drives the machine"},
	{"api/aweigh", nil, "generated messages, which clients share with nodes"},
	{"api", append(slices.Clip(surface), "etcd/auth"), "a surface: it uses nodes, and nothing below knows it"},
	{"client", append(slices.Clip(pure), "node", "api/aweigh"), "speaks the node's API"},
	{"internal/forge", slices.Clip(pure), "it looks at messages by their types' names, so that tests within package node can use it"},
	{"sim", append(slices.Clip(pure), "node/machine", "node/referral", "node/fsck", "store", "internal/forge"), "drives real machines in a simulated world, without libp2p"},
	{"sim/scenario", append(slices.Clip(pure), "node/machine", "internal/nearest", "internal/policytext"), "it says what happens in a world, and runs none"},
	{"sim/sweep", []string{"", "sim"}, "it runs worlds, and looks into none"},
	{"etcd", surface, "a surface"},
	{"etcd/auth", append(slices.Clip(pure), "node", "etcd/etcdpb", "internal/authn"), "it knows users, and serves no call"},
	{"internal", everything, "test helpers and tools; pure packages name the two that they may use"},
	{"cmd", everything, "wiring"},
	{"test", everything, "tests that span packages"},
}

var everything = append(slices.Clip(surface), "store", "p2p", "sim", "api", "etcd", "internal")

// impure are the packages, with all below them, that pure code must not import.
var impure = []struct{ path, reason string }{
	{"bufio", "there is no I/O to buffer"},
	{"context", "nothing in here waits, so nothing can be cancelled"},
	{"crypto/rand", "randomness is passed in as an io.Reader"},
	{"database", "no I/O"},
	{"expvar", "the machine returns notes; edges count them"},
	{"hash/maphash", "its seed differs between processes"},
	{"io/fs", "no I/O"},
	{"io/ioutil", "no I/O"},
	{"log", "the machine returns notes; edges log them"},
	{"math/big", "integers have bounds here; big ones belong to oracles in tests"},
	{"math/rand", "whoever needs a choice derives it from hashes"},
	{"net", "no I/O"},
	{"os", "no I/O, no environment"},
	{"plugin", "no I/O"},
	{"runtime", "the same on every machine"},
	{"sync", "no goroutines, so nothing to guard"},
	{"syscall", "no I/O"},
	{"testing", "tests stay in test files"},
	{"unsafe", "memory layout differs between machines"},
}

// impureNames are what pure code must not use of packages that it may import.
var impureNames = []struct {
	path   string
	names  []string
	reason string
}{
	{"time", []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}, "time is an argument"},
	{"time", []string{"Local", "LoadLocation"}, "the environment decides what they are"},
	{"fmt", []string{"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"}, "no I/O"},
}

// exceptions are imports of impure packages that stand for a reason. One that
// is no longer needed is an error.
var exceptions = []struct{ file, path, reason string }{
	{"internal/canon/append.go", "sync", "a cache of what types look like, for the goroutines around the core as well"},
	{"action/language.go", "sync", "the language is built once, for the goroutines around the core as well"},
	{"action/judge.go", "sync", "a cache of compiled tables, likewise"},
	{"keytree/nodes.go", "sync", "versions of a tree share nodes, also with goroutines around the core that read them"},
}

// plainData are the exported structs in and below node that may embed an exported type, with reasons. All are values
// that a caller reads; none acts.
var plainData = map[string]string{
	"node.Said":          "a verdict, and the scope that gave it",
	"node.Pending":       "a proposed decision, and what it still needs",
	"node.LineageEntry":  "an entry, and the block that it stands in",
	"node.Overview":      "the status of a scope, and what the node reports besides",
	"node.TailItem":      "an entry, or a run of entries in its place",
	"node.Standing":      "the ledger's standing of an anchor, with its name and weight",
	"node.Usage":         "the usage that the state counts, with that of the moment",
	"node.Explained":     "a change of trust, with the proof of the fault",
	"node.Change":        "the place of a change, and where its content is",
	"machine.ProposalIn": "a proposal, and its ballot once it is checked",
	"machine.Receipt":    "an outcome, and the block that it stands in",
}

// maxLines bounds a source file; tests and generated code may be longer.
const maxLines = 450

// words must not appear in the tree, outside NOTICE.
var words = []*regexp.Regexp{
	regexp.MustCompile(`(?i)adaptive\s+(query|index|network)`),
	regexp.MustCompile(`(?i)semantic\s+agent`),
}
