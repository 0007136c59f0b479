import Foundation
import HubCore
import SQLDatabase

/// Threads that read and check the large documents of requests, in turns of the requesters. Neither
/// I/O threads nor Swift's cooperative threads are blocked by it.
typealias DocumentQueue = JobQueue<Job<Void>>

extension DocumentQueue {
  static func documents(limits: JobLimits) async throws -> DocumentQueue {
    let queue = DocumentQueue(limits: limits)
    for number in 1...min(max(ProcessInfo.processInfo.activeProcessorCount / 2, 1), 4) {
      try await queue.startThread(
        named: "hub documents \(number)", batch: JobGroup(jobs: 1), isTimed: true, open: {},
        work: { jobs, _ in
          for job in jobs {
            do { try job.run(()) } catch { job.refuse(error) }
            job.finish()
          }
          return jobs.count
        },
        end: { _ in })
    }
    return queue
  }

  func read<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    do {
      return try await perform(.asked(.devices, bytes: bytes)) { _ in try work() }
    } catch let refusal as JobRefusal {
      throw StoreError(refusal)
    }
  }
}
