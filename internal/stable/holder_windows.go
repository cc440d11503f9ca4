package stable

// holderFile returns the file with the id of the process that holds a lock. On Windows a locked file cannot be read, so
// it is a separate one.
func holderFile(lock string) string { return lock + ".pid" }
