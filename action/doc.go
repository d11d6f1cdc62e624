// Package action holds the rules of a scope's policy about verbs.
//
// A verb stands before a name (pay user@elizabeth). A Table maps verbs to one of
// four classes, read, write, signal and claim, and to a predicate over the caller, the
// scope, the object and the time. A verb never changes which object a name gives.
//
// Predicates are expressions in CEL (https://cel.dev), in a part of it on which
// all nodes agree to the last bit: no floating-point numbers, no maps, whose order is
// undefined, no time zones, no regular expressions, and bounds of this package's own on
// their size and work. They see only the content of a Facts.
package action
