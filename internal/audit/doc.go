// Package audit writes what happened as lines of text for other systems, and verifies such lines offline.
//
// A trail is a part of a scope's lineage as lines of JSON (JSON Lines): Change for each entry, gap for a run of entries
// that it does not show, and Head for a state of the lineage that anchors made final. Each line has one form, to the
// byte. A reader that knows the identity of the network finds each line that was changed, added, removed or moved
// (Verify). No line holds a value: entries name contents by their digests.
package audit
