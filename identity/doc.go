// Package identity is who takes part: passports, resumes, rules and skill
// documents, the credentials that prove them, and the pure questions asked of
// them (does this name match, may this one send now, what is it good at). It
// stores nothing, keeps no clock, and never keeps a secret in the clear.
package identity
