import Foundation
import NotificationHubs
import PushEmulator

extension KillTestRun {
  /// Which of these installations the hub does not know.
  func missing(_ installations: [String]) async throws -> [String] {
    let load = try HubLoad(hub.line)
    let found = Set(
      await load.acknowledged(installations.count, width: 2) { load.get(installations[$0]) })
    return installations.indices.filter { !found.contains($0) }.map { installations[$0] }
  }

  /// Waits until nine tenths of a broadcast have their outcome, so that what is left are retries.
  func awaitProgress(of broadcast: Sent) async throws {
    let client = try hub.line.client()
    let goal = broadcast.audience.count * 9 / 10
    try await withLimit(.seconds(300), "most of broadcast \(broadcast.text)") {
      while true {
        let telemetry = try await client.telemetry(of: broadcast.id)
        let counts = telemetry.outcomes[.apns] ?? [:]
        if telemetry.state.isFinal || counts.values.reduce(0, +) >= goal { return }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
  }

  /// Waits until every broadcast and schedule has ended, and compares its counts with its audience.
  func awaitOutcomes() async throws {
    let client = try hub.line.client()
    for sent in sent where !sent.id.isEmpty {
      let telemetry = try await withLimit(.seconds(900), "the end of \(sent.text)") {
        while true {
          let telemetry = try await client.telemetry(of: sent.id)
          if telemetry.state.isFinal { return telemetry }
          try await Task.sleep(for: .milliseconds(100))
        }
      }
      guard telemetry.state == .completed,
        telemetry.outcomes == [.apns: [NotificationOutcome.success.name: sent.audience.count]]
      else {
        report.faults.append(
          "\(sent.text) ended as \(telemetry.state) with \(telemetry.outcomes) "
            + "for \(sent.audience.count) devices")
        continue
      }
    }
  }

  /// Waits until every single send has arrived, for as long as its retries may take: nobody knows
  /// the id by which its telemetry could be asked for. What is then still missing,
  /// ``checkDevices()`` tells.
  func awaitSingleSends() async throws {
    let limit = ContinuousClock.now + .seconds(180)
    for sent in sent where sent.id.isEmpty {
      let payload = Array(Self.payload(sent.text).utf8)
      for number in sent.audience {
        while try !emulator.pushes(shownOn: devices[number]).contains(where: {
          $0.payload.elementsEqual(payload)
        }), ContinuousClock.now < limit {
          try await Task.sleep(for: .milliseconds(100))
        }
      }
    }
  }

  /// Compares the statistics with the counts of all notifications: neither may know of a page that
  /// the other has lost.
  func checkStatistics() async throws {
    let client = try hub.line.client()
    let statistics = try await client.statistics(from: Date() - 86_400, step: 3_600)
    var outcomes: [String: Int] = [:]
    var count = 0
    for try await notification in client.notifications() {
      count += 1
      outcomes.merge(notification.outcomes, uniquingKeysWith: +)
    }
    outcomes[NotificationOutcome.skipped.name] = nil
    var counted = statistics.failed["apns"] ?? [:]
    counted[NotificationOutcome.success.name] = statistics.delivered["apns"]
    if statistics.accepted != count || counted != outcomes {
      report.faults.append(
        "statistics tell of \(statistics.accepted) notifications with \(counted), telemetry of "
          + "\(count) with \(outcomes)")
    }
  }

  /// Compares what each device was shown with what was accepted for it.
  func checkDevices() throws {
    var wanted = [[String]](repeating: [], count: devices.count)
    for sent in sent { for device in sent.audience { wanted[device].append(sent.text) } }
    for (number, device) in devices.enumerated() {
      var ids: [String: Set<String>] = [:]
      for push in try emulator.pushes(shownOn: device) {
        let text = String(decoding: push.payload, as: UTF8.self)
        report.pushes += 1
        if !ids[text, default: []].insert(push.id).inserted { report.repeats += 1 }
      }
      for text in wanted[number] {
        guard let found = ids[Self.payload(text)] else {
          report.faults.append("device \(number) did not get \(text)")
          continue
        }
        if found.count > 1 {
          report.faults.append("device \(number) got \(text) under the ids \(found)")
        }
      }
      if Set(ids.values.joined()).count != ids.values.reduce(0, { $0 + $1.count }) {
        report.faults.append("device \(number) got two notifications under one id")
      }
    }
    if report.repeats > report.repeatLimit {
      report.faults.append("\(report.repeats) repeats, \(report.repeatLimit) were in flight")
    }
  }
}
