package proc

import "os"

// cut makes run stop waiting for the other end to close. The job's end closes
// it already; this is for a handle that was passed out of the job.
func (d *drain) cut() { d.r.Close() }

func readRest(*os.File, []byte, func([]byte)) {}
