import Foundation
import NotificationHubs

extension Dispatcher {
  /// Every target of the page has its outcome or its retry.
  func completed(_ key: Int) {
    guard let page = pages.removeValue(forKey: key) else { return }
    // All its retries have been left to their rows.
    if page.retries != nil, page.outcome.isEmpty { return }
    if let sequence = page.sequence {
      jobs[page.notification]?.complete[sequence] = page
    } else {
      jobs[page.notification]?.completeRetries.append(page)
    }
    recordComplete(page.notification)
  }

  /// Writes down what may be written: complete pages in their order, several in one checkpoint when
  /// they have come together, one checkpoint of a notification at a time.
  func recordComplete(_ number: Int) {
    guard jobs[number]?.isRecording == false,
      let (taken, recorded) = jobs[number]?.takeCheckpoint(at: clock.now())
    else { return }
    let checkpoint = sparingDoubted(taken)
    jobs[number]?.isRecording = true
    spawn { [self] in
      let answer = await ask { [store] in try await store.checkpoint(checkpoint) }
      guard case .value = answer else { return answer.isGone ? .gone(number) : .nothing }
      return .recorded(number, checkpoint, recorded)
    }
  }

  func takeRecorded(_ number: Int, _ checkpoint: Checkpoint, _ recorded: [DispatchPage]) {
    for retry in checkpoint.retries {
      retryTurns.add(
        LaneKey(hub: checkpoint.hub, platform: retry.platform), due: retry.due)
    }
    for page in recorded {
      if page.sequence != nil {
        schedule.pageDone(number, targets: page.targets)
      } else if let retries = page.retries {
        recordedWhileReading.append((number, retries.lane, Array(retries.attempts.keys)))
      }
    }
    if !isReadingRetries { releaseRecordedRetries() }
    noteRemovals(of: checkpoint)
    jobs[number]?.isRecording = false
    if let context = jobs[number]?.context {
      metrics.recorded(
        checkpoint.counts,
        seconds: max(0, clock.now().timeIntervalSince(context.releasedAt)))
    }
    if checkpoint.state?.isFinal == true {
      remove(number)
    } else {
      recordComplete(number)
    }
  }

  /// Tells of a notification that has its final state.
  func noteEnd(of job: DispatchJob) {
    guard job.state.isFinal else { return }
    let devices = job.tally.values.reduce(0, +)
    let seconds = max(0, clock.now().timeIntervalSince(job.takenUpAt))
    metrics.finished(devices: devices, seconds: seconds)
    report(
      .finished(
        hub: job.context.hub, job.context.id, state: job.state, counts: job.tally,
        seconds: seconds))
  }
}
