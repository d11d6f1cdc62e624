// Package admission limits the work that peers and clients make a node do, so that none of them keeps others waiting.
//
// Of peers: Accounts says how long a frame waits before it is verified, by what it costs and who its sender is. Intake
// holds what was verified, a queue for each peer, until the runner takes it. Of the node's own clients: Pace holds them
// to the rate of a scope's policy, Sharing makes busy scopes give way to quiet ones, Costs makes them pay for
// transactions that all nodes find dear. Of the node itself: Announcements and Repeats bound what it sends to others.
//
// Limits are estimates and local to a node; the chain knows none of them. They use the clock and wait, so the package
// is not pure. It knows what frames are (package machine), and of a scope only who its Members are.
package admission
