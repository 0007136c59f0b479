import Foundation
import NotificationHubs
import Wire

/// Decides about the next request; ``PushInstallation`` makes it.
///
/// Everything follows from the stored record, the channel of this launch and the time, so that a
/// launch after a crash continues without a journal. Times are those of a clock that the user may
/// set: a wait counts as over when it lies in the future of its own beginning.
struct InstallationMachine: Sendable {
  enum Step: Hashable, Sendable {
    /// Let the app add to the installation, then pass it to ``prepared(_:at:)``.
    case prepare(Installation)
    case delete(String, of: String?)
    case wait(until: Date)
    case rest
  }

  /// The delays between attempts while there is no reply, each shortened at random (full jitter).
  /// The last one repeats.
  static let retryDelays: [TimeInterval] = [2, 10, 60, 300, 1_800]
  /// The longest delay that a hub may ask for.
  static let longestRetryAfter: TimeInterval = 86_400

  private enum Hold: Hashable {
    case pause(Wait, isThrottled: Bool)
    /// Until the next launch, foreground or change.
    case event
  }

  private enum Activity: Hashable {
    case preparing(departures: Int, revision: Int)
    case saving(fingerprint: String, departures: Int)
    case deleting(DeviceRecord.Departure?)

    var isRequest: Bool { if case .preparing = self { false } else { true } }
  }

  private(set) var record: DeviceRecord
  /// Changes of ``record`` that are not stored yet.
  private(set) var edits: [DeviceRecord.Edit] = []
  private let configuration: PushInstallation.Configuration
  /// The address and the versions: with others, the same installation is another registration.
  private let context: String
  private let isForSignedInUsersOnly: Bool

  private(set) var channel: PushChannel?
  private var permission: PushPermission?
  private var tokenProblem: String?
  /// Why ``edits`` could not be stored.
  private var storageProblem: StorageError?
  /// A look at whether there is something to send, after a change.
  private var look: Look?
  /// Counts the changes, so that an installation prepared before one is not sent after it.
  private var revision = 0
  private var hold: Hold?
  private var activity: Activity?
  private var failures = 0
  private var failure: RegistrarError?

  init(
    record: DeviceRecord, configuration: PushInstallation.Configuration, context: String,
    isForSignedInUsersOnly: Bool
  ) {
    self.record = record
    self.configuration = configuration
    self.context = context
    self.isForSignedInUsersOnly = isForSignedInUsersOnly
  }

  // MARK: Events

  mutating func didRegister(_ channel: PushChannel, at now: Date) {
    if self.channel != channel { revision += 1 }
    (self.channel, tokenProblem) = (channel, nil)
    lookSoon(at: now)
  }

  mutating func didFailToRegister(_ problem: String) { tokenProblem = problem }

  mutating func set(_ permission: PushPermission, at now: Date) {
    guard self.permission != permission else { return }
    self.permission = permission
    lookSoon(at: now)
  }

  /// Takes what is stored now, after an edit of this or another process.
  mutating func adopt(_ stored: DeviceRecord, at now: Date, urgently: Bool = false) {
    let isChanged =
      stored.desired != record.desired || stored.userID != record.userID
      || stored.userTags != record.userTags || stored.isEnabled != record.isEnabled
      || stored.departures != record.departures
    record = stored
    edits = []
    storageProblem = nil
    guard isChanged else { return }
    revision += 1
    if hold == .event { (hold, failure) = (nil, nil) }
    lookSoon(at: now)
    if urgently { flush(isRetry: true) }
  }

  /// The app came to the foreground, or the network came back.
  mutating func didEnterForeground(at now: Date) {
    failures = 0
    lookSoon(at: now)
    retry()
  }

  /// Ends the delay that collects changes.
  /// - Parameter isRetry: Ends the wait after a failure, too, unless the hub asked for it.
  mutating func flush(isRetry: Bool) {
    look?.isUrgent = true
    if isRetry { retry() }
  }

  /// Forgets the last confirmation: the hub has something else.
  mutating func distrust() { edit { $0.answer = nil } }

  private mutating func retry() {
    if case .pause(_, isThrottled: true) = hold { return }
    hold = nil
  }

  private mutating func lookSoon(at now: Date) {
    if look == nil { look = Look(first: now, last: now) } else { look?.last = now }
  }

  private mutating func edit(_ change: @escaping DeviceRecord.Edit) {
    change(&record)
    edits.append(change)
  }

  // MARK: The next step

  mutating func next(at now: Date) -> Step {
    guard activity == nil else { return .rest }
    switch hold {
    case .pause(let wait, _):
      if let end = wait.end(after: now) { return .wait(until: end) }
      hold = nil
    case .event: return .rest
    case nil: break
    }
    if !record.mayExist, !isForSignedInUsersOnly, !record.departures.isEmpty {
      edit { $0.departures = [] }
    }
    if let departure = record.departures.first {
      if isForSignedInUsersOnly || departure.deletesDevice {
        return delete(departure, of: departure.userID)
      }
      if channel == nil {
        // The token follows in a moment, unless this process is an extension, which leaves the
        // sign-out to the app. If there is none, the user must leave all the same.
        return tokenProblem == nil ? .rest : delete(departure, of: departure.userID)
      }
      let departures = record.departures.prefix { !$0.deletesDevice }.count
      return prepare(of: nil, tags: [], departures: departures)
    }
    let mayRegister = !isForSignedInUsersOnly || record.userID != nil
    guard record.isEnabled else {
      return record.mayExist && mayRegister ? delete(nil, of: record.userID) : .rest
    }
    guard channel != nil, mayRegister else { return .rest }
    if let end = wait?.end(after: now) { return .wait(until: end) }
    look = nil
    return prepare(of: record.userID, tags: record.userTags, departures: 0)
  }

  /// The wait before the next look; `nil` if it is due.
  private var wait: Wait? {
    if let look { return look.wait(configuration) }
    guard let answer = record.answer else { return nil }
    return Wait(since: answer.at, for: refreshInterval)
  }

  private var refreshInterval: TimeInterval {
    let life = configuration.lifetime?.seconds ?? .infinity
    return min(configuration.refreshInterval.seconds, life * 2 / 3)
  }

  private mutating func delete(_ departure: DeviceRecord.Departure?, of userID: String?) -> Step {
    activity = .deleting(departure)
    return .delete(record.installationID, of: userID)
  }

  private mutating func prepare(of userID: String?, tags: Set<Tag>, departures: Int) -> Step {
    guard let channel else { return .rest }
    activity = .preparing(departures: departures, revision: revision)
    var all = record.desired.tags.union(tags)
    if configuration.tagsPermission, let permission { all.insert(permission.tag) }
    return .prepare(
      Installation(
        installationID: record.installationID, userID: userID, platform: configuration.platform,
        pushChannel: channel, tags: Array(all), pushVariables: record.desired.pushVariables,
        templates: record.desired.templates))
  }

  // MARK: Results

  /// Decides whether the installation has to be sent, now that the app has added to it.
  /// - Returns: The installation to send; `nil` if the hub has it, or would refuse it.
  mutating func prepared(_ prepared: Installation, at now: Date) -> Installation? {
    guard case .preparing(let departures, let revision) = activity else { return nil }
    activity = nil
    guard revision == self.revision else { return nil }
    var installation = prepared
    installation.expirationTime = nil
    installation.tags.sort { $0.folded < $1.folded }
    let fingerprint = fingerprint(of: installation)
    if let answer = record.answer, answer.fingerprint == fingerprint,
      Wait(since: answer.at, for: refreshInterval).end(after: now) != nil
    {
      leave(departures)
      return nil
    }
    do { _ = try installation.validated() } catch {
      refuse(fingerprint, error.message, departures, at: now)
      return nil
    }
    if let life = configuration.lifetime {
      installation.expirationTime = now.addingTimeInterval(life.seconds)
    }
    activity = .saving(fingerprint: fingerprint, departures: departures)
    edit { ($0.mayExist, $0.answer) = (true, nil) }
    return installation
  }

  mutating func didFailToStore(_ problem: StorageError) { storageProblem = problem }

  /// The installation was not sent, since that it may be at the hub could not be stored.
  mutating func didFailToSend(at now: Date, jitter: Double) {
    activity = nil
    didFail(RegistrarError(.unreachable, "not sent"), at: now, jitter: jitter)
  }

  mutating func didFailToPrepare(_ problem: String, at now: Date, jitter: Double) {
    activity = nil
    didFail(RegistrarError(.unreachable, problem), at: now, jitter: jitter)
  }

  mutating func didSave(_ failure: RegistrarError?, at now: Date, jitter: Double) {
    guard case .saving(let fingerprint, let departures) = activity else { return }
    activity = nil
    guard let failure else {
      didSucceed()
      edit { $0.answer = .init(fingerprint: fingerprint, at: now) }
      return leave(departures)
    }
    guard failure.kind == .rejected else { return didFail(failure, at: now, jitter: jitter) }
    refuse(fingerprint, failure.detail, departures, at: now)
  }

  mutating func didDelete(_ failure: RegistrarError?, at now: Date, jitter: Double) {
    guard case .deleting(let departure) = activity else { return }
    activity = nil
    // A refusal of a sign-out is final if that user's sign-in alone could authorize it, and has
    // ended: the next user's registration replaces the device.
    let isFinal = departure != nil && isForSignedInUsersOnly
    if let failure, !isFinal || failure.isWorthRetrying {
      return didFail(failure, at: now, jitter: jitter)
    }
    didSucceed()
    edit { record in
      if let departure, let index = record.departures.firstIndex(of: departure) {
        record.departures.remove(at: index)
      }
      (record.mayExist, record.answer) = (false, nil)
    }
  }

  /// Drops the sign-outs that a registration without user has carried out.
  private mutating func leave(_ departures: Int) {
    guard departures > 0 else { return }
    edit { $0.departures.removeFirst(min(departures, $0.departures.count)) }
  }

  /// Keeps a refused installation from being sent again. The user who has signed out must leave all
  /// the same: then the whole device does.
  private mutating func refuse(
    _ fingerprint: String, _ reason: String, _ departures: Int, at now: Date
  ) {
    didSucceed()
    edit { record in
      record.answer = .init(fingerprint: fingerprint, at: now, refusal: reason)
      for index in record.departures.prefix(departures).indices {
        record.departures[index].deletesDevice = true
      }
    }
  }

  private mutating func didSucceed() { (failures, failure, hold) = (0, nil, nil) }

  private mutating func didFail(_ error: RegistrarError, at now: Date, jitter: Double) {
    failure = error
    guard error.isWorthRetrying else {
      hold = .event
      return
    }
    failures += 1
    let asked = error.retryAfter.map { min(max($0.seconds, 0), Self.longestRetryAfter) }
    // Devices that were refused together must not return together.
    let delay =
      asked.map { $0 * (1 + jitter / 5) }
      ?? Self.retryDelays[min(failures, Self.retryDelays.count) - 1] * jitter
    hold = .pause(Wait(since: now, for: max(delay, 1)), isThrottled: asked != nil)
  }

  private func fingerprint(of installation: Installation) -> String {
    Hex.encode(digest(of: Array(installation.jsonData) + [0] + Array(context.utf8)))
  }

  // MARK: The state

  var state: PushInstallation.State {
    switch storageProblem {
    case .locked: return .locked
    case .failed(let reason): return .storageFailed(reason)
    case nil: break
    }
    if activity?.isRequest == true { return .saving }
    switch (failure, hold) {
    case (let failure?, .pause(let wait, _)): return .failed(failure, retryAt: wait.end)
    case (let failure?, .event): return .failed(failure, retryAt: nil)
    default: break
    }
    if !record.departures.isEmpty { return .pending }
    if !record.isEnabled {
      return record.mayExist && !isForSignedInUsersOnly ? .pending : .disabled
    }
    if isForSignedInUsersOnly, record.userID == nil { return .waitingForSignIn }
    guard channel != nil else { return .waitingForToken(problem: tokenProblem) }
    guard activity == nil, look == nil, let answer = record.answer else { return .pending }
    if let refusal = answer.refusal {
      return .failed(RegistrarError(.rejected, refusal), retryAt: nil)
    }
    return .saved(
      SaveReceipt(fingerprint: String(answer.fingerprint.prefix(8)), confirmedAt: answer.at))
  }
}

extension RegistrarError {
  fileprivate var isWorthRetrying: Bool { kind == .unreachable || kind == .throttled }
}

/// A look that is due some time after the last change, and not too long after the first.
private struct Look: Hashable {
  var first: Date
  var last: Date
  var isUrgent = false

  func wait(_ configuration: PushInstallation.Configuration) -> Wait? {
    if isUrgent { return nil }
    let end = min(
      last.addingTimeInterval(configuration.saveDelay.seconds),
      first.addingTimeInterval(configuration.longestSaveDelay.seconds))
    return Wait(since: last, for: end.timeIntervalSince(last))
  }
}

/// A span of a clock that may be set.
private struct Wait: Hashable {
  let since: Date
  let duration: TimeInterval

  init(since: Date, for duration: TimeInterval) {
    self.since = since
    self.duration = duration
  }

  var end: Date { since.addingTimeInterval(duration) }

  /// - Returns: `nil` if it is over, also if the clock was set back by more than the span: nothing
  ///   waits longer than twice its span.
  func end(after now: Date) -> Date? {
    abs(now.timeIntervalSince(since)) < duration ? end : nil
  }
}
