import Foundation
import NotificationHubs
import Wire

/// Draws the conclusions. Pure: everything that it says follows from ``ExplainedFacts``.
struct Explainer {
  typealias Explanation = NotificationExplanation
  typealias Fact = NotificationExplanation.Fact
  typealias Verdict = NotificationExplanation.Verdict

  let found: ExplainedFacts
  let device: ExplainedDevice
  let renderer: Renderer
  let seed: PushIDSeed

  init(_ found: ExplainedFacts, device: ExplainedDevice) {
    self.found = found
    self.device = device
    renderer = Renderer(found.record.request)
    seed = PushIDSeed(found.record.id)
  }

  var record: NotificationRecord { found.record }

  func explanation() -> NotificationExplanation {
    let candidates = record.request.isDirect ? directCandidates() : audienceCandidates()
    let (verdict, text) = conclusion(candidates)
    return NotificationExplanation(
      notificationID: record.id.rawValue, state: .init(rawValue: record.state.rawValue),
      verdict: verdict, text: text, facts: notificationFacts() + deviceFacts(),
      candidates: candidates)
  }

  private func audienceCandidates() -> [Explanation.Candidate] {
    let known = Set(found.registrations.map(\.number))
    // Those that the device had then and that have gone.
    let gone = found.outcomes.values.filter { !known.contains($0.failure.registration) }
      .sorted { $0.failure.registration < $1.failure.registration }
    // What decides first; those that the send did not mean at all come last.
    return (found.registrations.map(candidate) + gone.map(goneCandidate)).enumerated()
      .sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }.map(\.element)
  }

  // MARK: Conclusion

  /// The first that a registration has decides; the others only add to it.
  fileprivate static let order: [Verdict] = [
    .delivered, .failed, .retrying, .waiting, .duplicate, .scheduled, .canceled, .unknown,
    .expired, .tooLate, .tagsDiffer, .notAddressed,
  ]

  private func conclusion(_ candidates: [Explanation.Candidate]) -> (Verdict, String) {
    for verdict in Self.order {
      if let first = candidates.first(where: { $0.verdict == verdict }) {
        return (verdict, first.text)
      }
    }
    if record.request.isDirect {
      return (
        .notAddressed,
        "It was sent to devices by their handles, and the handle of \(deviceName) as it is now was "
          + "not among them."
      )
    }
    let isThere = found.installation != nil
    switch device {
    case .installation where isThere && found.installation?.pushChannelExpired == true:
      return (
        .noDevice,
        "The installation is there, but its push channel was reported dead, so nothing reaches it "
          + "until the app registers again. Nothing is kept of this notification for it."
      )
    case .installation where isThere:
      return (.noDevice, "The installation is there but has no registration that could be sent to.")
    case .installation, .registration:
      return (
        .noDevice,
        "There is no \(deviceName) in this hub now, and nothing is kept about it for this "
          + "notification: it was never registered here, or it has been deleted since."
      )
    }
  }

  var deviceName: String {
    switch device {
    case .installation(let id): "installation '\(id)'"
    case .registration(let id): "registration '\(id)'"
    }
  }

  // MARK: Facts of the whole

  private func notificationFacts() -> [Fact] {
    var facts: [Fact] = []
    var times = "Accepted \(Self.text(record.enqueuedAt))"
    if let due = record.scheduledFor { times += ", to be sent \(Self.text(due))" }
    if let start = record.startedAt { times += ", started \(Self.text(start))" }
    if let end = record.endedAt { times += ", ended \(Self.text(end))" }
    facts.append(Fact("notification", nil, times + "; state \(record.state.rawValue)."))
    let kind =
      switch record.request.format {
      case .template: "A template send"
      case .native(let platform): "A native send for \(platform.rawValue)"
      }
    let audience =
      record.request.isDirect
      ? "devices named by their handles" : record.request.tags.map { "'\($0)'" } ?? "every device"
    facts.append(Fact("audience", nil, "\(kind) to \(audience)."))
    if record.hasClearedOutcomes {
      facts.append(
        Fact(
          "kept", nil,
          "What was kept of single devices has been deleted, for its age or its number."))
    } else if record.keeping == OutcomeKeeping.none {
      facts.append(
        Fact("kept", nil, "The server keeps no outcomes of single devices (keepOutcomes: none)."))
    }
    return facts
  }

  private func deviceFacts() -> [Fact] {
    guard case .installation(let id) = device else { return [] }
    guard let installation = found.installation else {
      return [Fact("installation", false, "There is no installation '\(id)' now.")]
    }
    var text = "It is there"
    text += ", on \(installation.platform.rawValue)"
    if let last = found.confirmed.values.max() {
      text += ", last written or confirmed \(Self.text(last))"
    }
    if let end = installation.expirationTime { text += ", expires \(Self.text(end))" }
    var facts = [Fact("installation", true, text + ".")]
    if installation.pushChannelExpired {
      facts.append(
        Fact(
          "channel", false,
          "The push service has reported its handle dead; only a new registration by the app "
            + "brings it back."))
    }
    return facts
  }

  static func text(_ date: Date) -> String { WireDate.seconds(date) }
}

extension NotificationExplanation.Candidate {
  fileprivate var rank: Int { Explainer.order.firstIndex(of: verdict) ?? Explainer.order.count }
}
