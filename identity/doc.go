// Package identity describes who takes part: passports, resumes, rules and
// skill documents, the credentials that prove them, and pure functions over
// them (does this name match, may this identity send now, what can it do). It
// stores nothing, keeps no clock, and never keeps a secret in the clear.
package identity
