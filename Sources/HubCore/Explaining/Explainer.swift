import Foundation
import NotificationHubs
import Wire

/// Draws the conclusions. A pure function of ``ExplainedFacts``.
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
    // Registrations that the device had then and that were deleted since.
    let gone = found.outcomes.values.filter { !known.contains($0.failure.registration) }
      .sorted { $0.failure.registration < $1.failure.registration }
    // The decisive ones come first, those that the send did not address last.
    return (found.registrations.map(candidate) + gone.map(goneCandidate)).enumerated()
      .sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }.map(\.element)
  }

  // MARK: Conclusion

  /// The first verdict of a registration decides; the others only add to it.
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

  // MARK: Facts about the notification

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

/// The verdict on a registration.
extension Explainer {
  // MARK: From stored outcomes

  func settle(
    _ candidate: inout Explanation.Candidate, _ kept: KeptOutcome, twin: StoredRegistration?
  ) {
    let failure = kept.failure
    candidate.outcome = DeviceOutcome(kept)
    candidate.outcome?.handle = nil
    let tries = failure.attempts > 1 ? ", after \(failure.attempts) tries" : ""
    let when = " on \(Self.text(kept.at))"
    switch failure.outcome {
    case .success:
      candidate.verdict = .delivered
      candidate.text = "The push service took the push\(when)\(tries)."
    case .skipped:
      candidate.verdict = .duplicate
      let other =
        twin.map { "registration '\($0.id)'" } ?? "another registration of the same device"
      candidate.text =
        "It was left out, because \(other) has the same handle and got the push in its place."
    case .aborted:
      candidate.verdict = .canceled
      candidate.text = "The notification was aborted\(when) before it was this device's turn."
      if failure.attempts > 0 {
        candidate.text =
          "The notification was aborted\(when) while it waited to be tried again\(tries)."
      }
    default:
      candidate.verdict = .failed
      let who = failure.status > 0 ? "The push service answered" : "It failed"
      let status = failure.status > 0 ? " \(failure.status)" : ""
      let reason = failure.reason.map { failure.status > 0 ? " \($0)" : ": \($0)" } ?? ""
      candidate.text =
        "\(who)\(status)\(reason)\(when)\(tries); outcome \(failure.outcome.name). "
        + failure.advice
    }
  }

  func settle(
    _ candidate: inout Explanation.Candidate, _ retry: Checkpoint.Retry, platform: PushPlatform
  ) {
    candidate.verdict = .retrying
    candidate.nextTry = retry.due
    candidate.text = "It is tried again \(Self.text(retry.due))"
    guard let answer = retry.answer else {
      candidate.text += "; it has been put off without a try, because nothing gets through to "
      candidate.text += "\(platform.rawValue) at the moment."
      return
    }
    candidate.outcome = DeviceOutcome(
      platform: platform, registrationID: candidate.registrationID, installationID: nil,
      handle: nil, outcomeName: answer.outcome.name, status: Int(answer.status),
      reason: answer.reason, attempts: retry.attempts, time: nil)
    let tries = retry.attempts == 1 ? "the first try" : "\(retry.attempts) tries"
    let status = answer.status > 0 ? "\(answer.status) " : ""
    candidate.text +=
      "; after \(tries) the last answer was \(status)\(answer.reason ?? answer.outcome.name)."
  }

  // MARK: From the rules

  /// The verdict on a registration without a stored outcome.
  func judged(
    _ registration: StoredRegistration, isMatch: Bool, _ candidate: Explanation.Candidate
  ) -> (Verdict, String) {
    func failing(_ name: String) -> Fact? {
      candidate.facts.first { $0.name == name && $0.holds == false }
    }
    if let fact = failing("kind") { return (.notAddressed, fact.text) }
    if let fact = failing("existed"), record.cursor >= registration.number || isOver {
      return (.tooLate, fact.text)
    }
    if let fact = failing("expiry") { return (.expired, fact.text) }
    if !isMatch, let fact = failing("tags") {
      let changed = candidate.facts.contains { $0.name == "changed" }
      return (
        .tagsDiffer,
        fact.text + (changed ? " Its tags may have been others when it was sent." : "")
      )
    }
    return judged(number: registration.number, registration.draft.platform)
  }

  /// The verdict on a target that the notification addresses.
  func judged(number: RegistrationID, _ platform: PushPlatform) -> (Verdict, String) {
    switch record.state {
    case .scheduled:
      let due = record.scheduledFor.map(Self.text) ?? "later"
      return (.scheduled, "It is scheduled for \(due), and as things are now it would be sent.")
    case .canceled where record.counts.isEmpty:
      return (.canceled, "The notification was cancelled before it was sent.")
    case .enqueued:
      return (.waiting, "The notification is accepted; its delivery has not begun.")
    case .processing where number > record.cursor && record.abortedAt != nil:
      return (.canceled, "The notification is being aborted, and had not come to this device.")
    case .processing where number > record.cursor:
      return (.waiting, "The notification is under way and has not come to this device yet.")
    case .processing, .completed, .noTargetFound, .abandoned, .canceled: return delivered(platform)
    }
  }

  private var isOver: Bool { record.state.isFinal || record.isAudienceRead }

  /// The conclusion when no outcome is stored for a device that was addressed.
  private func delivered(_ platform: PushPlatform) -> (Verdict, String) {
    let successes = record.counts.filter {
      $0.key.platform == platform && $0.key.outcome == .success
    }.values.reduce(0, +)
    if record.hasClearedOutcomes {
      return (.unknown, "What was kept of single devices has been deleted, so nobody can tell.")
    }
    switch record.keeping {
    case OutcomeKeeping.none?:
      return (.unknown, "The server keeps no outcomes of single devices, so nobody can tell.")
    case .all?:
      return (
        .unknown,
        "Every outcome is kept, and there is none of this device: it was not in the audience then. "
          + "Its tags or template may have changed since."
      )
    case .failures?, nil:
      guard successes > 0 else {
        return (
          .unknown,
          "No failure is kept of it, and no push to \(platform.rawValue) succeeded: it was not in "
            + "the audience then. Its tags or template may have changed since."
        )
      }
      return (
        .delivered,
        "No failure is kept of it, so the push service took the push, unless the device's tags or "
          + "template have changed since. What the device does with a push is not reported."
      )
    }
  }
}

extension Checkpoint.Failure {
  /// The meaning of the outcome; if this server itself refused the push, the consequence of that.
  fileprivate var advice: String {
    guard status == 0, reason?.hasPrefix(PushResult.refusedHere) == true else {
      return outcome.advice
    }
    return
      "The push service was not asked, and the device stays: the next send reaches it once the "
      + "operator of the server allows the host."
  }
}

extension NotificationOutcome {
  /// The meaning of an outcome, and the advice for it.
  var advice: String {
    switch self {
    case .expiredChannel, .badChannel:
      "The handle is not valid (any more); the hub removes such a registration, and it comes back "
        + "when the app registers again."
    case .wrongChannel: "The handle belongs to another app or environment than the credential."
    case .invalidCredentials, .invalidToken, .wrongToken:
      "The push service does not accept the hub's credential: check key, team, app and environment."
    case .invalidNotificationFormat, .pnsInterfaceError:
      "The push service does not understand the payload or a header of it."
    case .invalidNotificationSize: "The payload is larger than the push service takes."
    case .throttled, .channelThrottled: "The push service was asked too often."
    case .aborted: "Its sender has called it off."
    case .abandonedNotificationMessages: "The hub's time for it ran out before it got through."
    case .pnsUnreachable, .tokenProviderUnreachable:
      "There was no connection to the push service, or no reply."
    case .pnsServerError, .pnsUnavailable, .tokenProviderInterfaceError:
      "The fault was the push service's own."
    case .channelDisconnected, .dropped:
      "The device was not connected, and nothing was kept for it."
    case .success, .refreshToken, .skipped, .noTargets, .unknownError: ""
    }
  }
}
