package runs

// holderFile returns the file that has the id of the process that holds a lock. On Windows a locked file cannot be
// read: it lies beside.
func holderFile(lock string) string { return lock + ".pid" }
