// Package alias is the grammar of names.
//
// A key is a byte string; it is what scopes store. An alias is a key that
// people write in a friendlier way, broadest part first but for the type:
//
//	[ACTION ]TYPE@DOMAIN[.SUB…][/PATH…][.vN]     read org@wikipedia.en/articles/42.v3
//
// stands for the key /org/wikipedia/en/articles/42, its version 3, and the
// action read, which may also be written read:org@…. A Name is one or the
// other, and Parse is total: every text gives one Name or one *SyntaxError that
// points at the offending byte.
//
// Keys are never out of reach. Text that starts with a slash is the key itself,
// byte for byte, and takes neither a version nor any other reading of its
// suffix; text in double quotes is a Go string literal (strconv.Quote) for any
// other key. An action may stand before either.
//
// In alias form, segments are brought into Unicode Normalization Form C, so
// that one name typed on two keyboards is one key, and hold no white space,
// control characters, marks that reorder text or other characters that do not
// show.
package alias
