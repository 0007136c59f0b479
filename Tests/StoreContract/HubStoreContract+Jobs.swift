import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let jobsClauses: [Clause] = [
    Clause("a job is kept with how far it has come") { store in
      let hub = try await makeHub(store)
      var job = HubJob(
        id: HubJob.newID(at: now, random: .system), hub: hub, kind: .importUpsertRegistrations,
        outputContainer: "https://h/c?sig=a",
        importFile: "https://h/c/in?sig=b", createdAt: now)
      try await store.addJob(job, forgetting: now)
      try expectEqual(try await store.job(job.id, hub: hub), job)
      try expectEqual(try await store.unfinishedJobs(), [job])
      job.status = .running
      job.progress = 12.5
      job.updatedAt = now.addingTimeInterval(1)
      job.checkpoint.inputSize = 1000
      job.checkpoint.inputBytes = 125
      job.checkpoint.lines = 3
      job.checkpoint.failedLines = 1
      job.checkpoint.cursor = 7
      job.checkpoint.outputBytes = 70
      job.checkpoint.failedBytes = 11
      try await store.updateJob(job)
      try expectEqual(try await store.job(job.id, hub: hub), job)
      job.status = .failed
      job.failure = "no such file"
      job.outputFile = "a/Output.txt"
      job.failedFile = "a/Failed.txt"
      try await store.updateJob(job)
      try expectEqual(try await store.jobs(hub: hub), [job])
      try expectEqual(try await store.unfinishedJobs(), [])
      try expect(try await store.job(job.id, hub: hub + 1) == nil, "another hub's job")
    },
    Clause("jobs are listed from the youngest, and finished ones are forgotten") { store in
      let hub = try await makeHub(store)
      var ids: [String] = []
      for minute in 0..<3 {
        let at = now.addingTimeInterval(Double(minute) * 60)
        var job = HubJob(
          id: HubJob.newID(at: at, random: .system), hub: hub, kind: .exportRegistrations,
          outputContainer: "file:///c",
          importFile: nil, createdAt: at)
        try await store.addJob(job, forgetting: .distantPast)
        ids.insert(job.id, at: 0)
        guard minute < 2 else { continue }
        job.status = .completed
        job.updatedAt = at
        try await store.updateJob(job)
      }
      try expectEqual(try await store.jobs(hub: hub).map(\.id), ids)
      let last = HubJob(
        id: HubJob.newID(at: now.addingTimeInterval(300), random: .system), hub: hub,
        kind: .exportRegistrations,
        outputContainer: "file:///c", importFile: nil, createdAt: now.addingTimeInterval(300))
      try await store.addJob(last, forgetting: now.addingTimeInterval(30))
      try expectEqual(try await store.jobs(hub: hub).map(\.id), [last.id, ids[0], ids[1]])
      _ = try await store.deleteHub(named: "hub1")
      try expectEqual(try await store.unfinishedJobs(), [])
    },
  ]
}
