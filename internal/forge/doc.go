// Package forge makes forgeries of messages, for the simulator and for tests: it finds by reflection every place in
// a decoded message that a signature speaks for, and spoils one by an operator, such as to leave out signatures, to
// put in those of another view, or to sign in another's name.
package forge
