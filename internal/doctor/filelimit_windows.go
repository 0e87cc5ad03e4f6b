package doctor

// fileLimit has nothing to compare: Windows bounds handles by memory only.
func fileLimit() Finding {
	return Finding{"file limit", Fine, "this system has no limit for each process", ""}
}
