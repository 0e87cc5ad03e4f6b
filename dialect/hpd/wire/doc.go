// Package wire has the events and bodies of HPD's hosted API as Go types, with
// their exact JSON: the live envelope, the form of the log, the two surfaces
// (branches and threads) and the bodies of every route. It never serves a request
// and never decides what is stored: the table of package branch does.
package wire
