"""The parts of every long job: plan, folder, lock and record, resuming, an orderly stop, progress and options.

plan = Plan("encode", options={"normalize": True}, inputs={"text": sha256, "model": fingerprint})
with open_job(out, plan, resume="auto") as job, orderly_stop(progress) as stop, progress.bar("encoding", n) as bar:
    ...  # write into job.work; the next run resumes from its files after a stop
    job.finish({"rows": n})
"""
