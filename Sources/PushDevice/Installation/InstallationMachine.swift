import Foundation
import NotificationHubs
import Wire

/// Decides about the next request; ``PushInstallation`` makes it.
///
/// Everything follows from the stored record, the channel and the permission of this launch and the
/// time, so that a launch after a crash continues without a journal.
struct InstallationMachine: Sendable {
  enum Step: Hashable, Sendable {
    /// Let the app add to the installation, then pass it to ``prepared(_:at:)``.
    case prepare(Installation)
    case delete(String, of: String?)
    case endSignIn(of: String)
    case wait(until: Date)
    case rest
  }

  /// The delays between attempts while there is no reply, each shortened at random (full jitter).
  /// The last one repeats.
  static let retryDelays: [TimeInterval] = [2, 10, 60, 300, 1_800]
  /// The longest delay that a hub may ask for.
  static let longestRetryAfter: TimeInterval = 86_400

  private enum Hold: Hashable {
    case pause(Wait)
    /// Until the next launch, foreground or change.
    case event
  }

  private enum Activity: Hashable {
    case preparing(Installation, signOuts: Int, revision: Int)
    case saving(Installation, fingerprint: String, signOuts: Int, revision: Int)
    case deleting(DeviceRecord.PendingSignOut?)
    case endingSignIn(DeviceRecord.PendingSignOut)

    var isRequest: Bool { if case .preparing = self { false } else { true } }
  }

  /// A confirmation by the hub.
  struct Confirmation: Hashable, Sendable {
    var revision: Int
    var receipt: SaveReceipt
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
  /// The check whether there is something to send, after a change. It stays until an installation
  /// has been compared with the last answer.
  private var check: PendingCheck?
  /// Counts the changes, so that an installation prepared before one is not sent after it.
  private(set) var revision = 0
  /// The last confirmation of this launch.
  private(set) var confirmation: Confirmation?
  /// The installation that the hub has confirmed in this launch.
  private(set) var confirmedInstallation: Installation?
  private var hold: Hold?
  private var activity: Activity?
  private var failures = 0
  private var failure: RegistrarError?
  /// The sign-out that the backend has refused. The next user's registration may precede it, which
  /// replaces the installation.
  private var refusedSignOut: DeviceRecord.PendingSignOut?

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
    scheduleCheck(at: now)
  }

  mutating func didFailToRegister(_ problem: String) { tokenProblem = problem }

  mutating func set(_ permission: PushPermission, at now: Date) {
    guard self.permission != permission else { return }
    self.permission = permission
    revision += 1
    scheduleCheck(at: now)
  }

  /// Whether nothing can be sent because the permission, which would be a tag, is unknown.
  var needsPermission: Bool { configuration.tagsPermission && permission == nil }

  /// Takes what is stored now, after an edit of this or another process.
  mutating func adopt(_ stored: DeviceRecord, at now: Date, urgently: Bool = false) {
    let isChanged =
      stored.desired != record.desired || stored.userID != record.userID
      || stored.userTags != record.userTags || stored.isEnabled != record.isEnabled
      || stored.signOuts != record.signOuts
    record = stored
    edits = []
    storageProblem = nil
    guard isChanged else { return }
    revision += 1
    if hold == .event { (hold, failure) = (nil, nil) }
    scheduleCheck(at: now)
    if urgently { flush(isRetry: true) }
  }

  /// The user has signed in: what was refused for lack of a sign-in is tried again at once.
  mutating func didSignIn(at now: Date) {
    scheduleCheck(at: now)
    flush(isRetry: true)
  }

  /// The app came to the foreground, or the network came back.
  mutating func didEnterForeground(at now: Date) {
    failures = 0
    scheduleCheck(at: now)
    hold = nil
  }

  /// Ends the delay that collects changes.
  /// - Parameter isRetry: Ends the wait after a failure, too, unless the hub asked for it.
  mutating func flush(isRetry: Bool) {
    check?.isUrgent = true
    if isRetry { hold = nil }
  }

  /// Forgets the last confirmation: the hub has something else.
  mutating func discardAnswer() { edit { $0.answer = nil } }

  private mutating func scheduleCheck(at now: Date) {
    if check == nil { check = PendingCheck(first: now, last: now) } else { check?.last = now }
  }

  private mutating func edit(_ change: @escaping DeviceRecord.Edit) {
    change(&record)
    edits.append(change)
  }

  /// Whether the hub has confirmed a revision and something has changed since.
  func hasChanged(since revision: Int) -> Bool {
    guard let confirmation else { return false }
    return confirmation.revision >= revision && self.revision > revision
  }

  // MARK: The next step

  mutating func next(at now: Date) -> Step {
    guard activity == nil else { return .rest }
    // A process without the system's answer is an extension, which leaves everything to the app, or
    // an app that gets the token in a moment: two processes would send past each other.
    guard channel != nil || tokenProblem != nil else { return .rest }
    if let throttle = record.throttle {
      if let end = throttle.end(after: now) { return .wait(until: end) }
      edit { $0.throttle = nil }
    }
    switch hold {
    case .pause(let wait):
      if let end = wait.end(after: now) { return .wait(until: end) }
      hold = nil
    case .event: return .rest
    case nil: break
    }
    if let signOut = record.signOuts.first, let step = step(of: signOut) { return step }
    guard record.isEnabled else {
      return record.mayExist && mayRegister ? delete(nil, of: record.userID) : .rest
    }
    guard channel != nil, mayRegister, !needsPermission else { return .rest }
    if let end = wait?.end(after: now) { return .wait(until: end) }
    return prepare(of: record.userID, tags: record.userTags, signOuts: 0)
  }

  /// Whether the next step may be a sign-out or a removal.
  var mayDelete: Bool { !record.signOuts.isEmpty || !record.isEnabled && record.mayExist }

  private var mayRegister: Bool { !isForSignedInUsersOnly || record.userID != nil }

  /// The request of a sign-out; `nil` if the next user's registration precedes it.
  private mutating func step(of signOut: DeviceRecord.PendingSignOut) -> Step? {
    if isForSignedInUsersOnly {
      if signOut.hasLeft == true || !record.mayExist {
        if signOut.userID == record.userID {
          // Signed in again, with the sign-in that would be ended.
          edit { $0.signOuts.removeAll { $0 == signOut } }
          return record.signOuts.first.flatMap { step(of: $0) }
        }
        activity = .endingSignIn(signOut)
        return .endSignIn(of: signOut.userID)
      }
      return signOut == refusedSignOut && isReplaceable ? nil : delete(signOut, of: signOut.userID)
    }
    if !record.mayExist {
      edit { $0.signOuts = [] }
      return nil
    }
    // If there is no token, the user must leave all the same.
    if signOut.deletesDevice || channel == nil { return delete(signOut, of: signOut.userID) }
    if needsPermission { return .rest }
    let signOuts = record.signOuts.prefix { !$0.deletesDevice }.count
    return prepare(of: nil, tags: [], signOuts: signOuts)
  }

  /// Whether the registration of a user who has signed in since can replace the installation.
  private var isReplaceable: Bool {
    record.userID != nil && record.isEnabled && channel != nil && record.answer?.refusal == nil
  }

  /// The wait before the next check; `nil` if it is due.
  private var wait: Wait? {
    if let check { return check.wait(configuration) }
    guard let answer = record.answer else { return nil }
    return Wait(since: answer.at, for: refreshInterval)
  }

  private var refreshInterval: TimeInterval {
    let life = configuration.lifetime?.seconds ?? .infinity
    return min(configuration.refreshInterval.seconds, life * 2 / 3)
  }

  private mutating func delete(
    _ signOut: DeviceRecord.PendingSignOut?, of userID: String?
  ) -> Step {
    activity = .deleting(signOut)
    return .delete(record.installationID, of: userID)
  }

  private mutating func prepare(of userID: String?, tags: Set<Tag>, signOuts: Int) -> Step {
    guard let channel else { return .rest }
    var all = record.desired.tags.union(tags)
    if configuration.tagsPermission, let permission { all.insert(permission.tag) }
    let installation = Installation(
      installationID: record.installationID, userID: userID, platform: configuration.platform,
      pushChannel: channel, tags: Array(all), pushVariables: record.desired.pushVariables,
      templates: record.desired.templates)
    activity = .preparing(installation, signOuts: signOuts, revision: revision)
    return .prepare(installation)
  }

  // MARK: Results

  /// Decides whether the installation has to be sent, now that the app has added to it.
  /// - Returns: The installation to send; `nil` if the hub has it, or would refuse it.
  mutating func prepared(_ prepared: Installation, at now: Date) -> Installation? {
    guard case .preparing(_, let signOuts, let revision) = activity else { return nil }
    activity = nil
    guard revision == self.revision else { return nil }
    if signOuts == 0 { check = nil }
    var installation = prepared
    installation.expirationTime = nil
    installation.tags.sort { $0.folded < $1.folded }
    let fingerprint = fingerprint(of: installation)
    if let answer = record.answer, answer.fingerprint == fingerprint,
      Wait(since: answer.at, for: refreshInterval).end(after: now) != nil
    {
      if let refusal = answer.refusal {
        refuse(fingerprint, refusal, signOuts, at: answer.at)
      } else {
        confirm(installation, revision, answer, signOuts)
      }
      return nil
    }
    do { _ = try installation.validated() } catch {
      refuse(fingerprint, error.message, signOuts, at: now)
      return nil
    }
    if let life = configuration.lifetime {
      installation.expirationTime = now.addingTimeInterval(life.seconds)
    }
    activity = .saving(
      installation, fingerprint: fingerprint, signOuts: signOuts, revision: revision)
    let userID = installation.userID
    edit { record in
      (record.mayExist, record.answer) = (true, nil)
      if let userID { record.registeredUsers = (record.registeredUsers ?? []).union([userID]) }
    }
    return installation
  }

  mutating func didFailToStore(_ problem: StorageError) { storageProblem = problem }

  /// The installation was not sent: the app could not add to it, or that it may be at the hub could
  /// not be stored. It is checked again.
  mutating func didFailToSend(_ problem: String, at now: Date, jitter: Double) {
    activity = nil
    didFail(RegistrarError(.unreachable, problem), at: now, jitter: jitter)
  }

  /// The app could not add to the installation.
  /// - Returns: The installation to go on with, which a sign-out does without the addition.
  mutating func didFailToPrepare(
    _ problem: String, at now: Date, jitter: Double
  ) -> Installation? {
    if case .preparing(let installation, let signOuts, _) = activity, signOuts > 0 {
      return installation
    }
    if signOutFormerUser(deletesDevice: false) {
      activity = nil
      return nil
    }
    didFailToSend(problem, at: now, jitter: jitter)
    return nil
  }

  mutating func didSave(_ failure: RegistrarError?, at now: Date, jitter: Double) {
    guard case .saving(let installation, let fingerprint, let signOuts, let revision) = activity
    else { return }
    activity = nil
    guard let failure else {
      return didSave(installation, fingerprint, signOuts, revision, at: now)
    }
    guard failure.kind == .rejected else { return didFail(failure, at: now, jitter: jitter) }
    refuse(fingerprint, failure.detail, signOuts, at: now)
  }

  private mutating func didSave(
    _ installation: Installation, _ fingerprint: String, _ signOuts: Int, _ revision: Int,
    at now: Date
  ) {
    didSucceed()
    let answer = DeviceRecord.Answer(fingerprint: fingerprint, at: now)
    edit { record in
      // Another process may have deleted the installation before this request arrived.
      (record.mayExist, record.answer) = (true, answer)
      record.registeredUsers = Set([installation.userID].compactMap(\.self))
      // Another process may have signed the user out before this request arrived.
      if let user = installation.userID, record.userID == nil,
        !record.signOuts.contains(where: { $0.userID == user })
      {
        record.signOuts.append(.init(userID: user, deletesDevice: false))
      }
    }
    confirm(installation, revision, answer, signOuts)
  }

  mutating func didDelete(_ failure: RegistrarError?, at now: Date, jitter: Double) {
    guard case .deleting(let signOut) = activity else { return }
    activity = nil
    if let failure, let signOut, isForSignedInUsersOnly {
      return didFail(toRemove: signOut, failure, at: now, jitter: jitter)
    }
    if let failure { return didFail(failure, at: now, jitter: jitter) }
    didSucceed()
    let isForSignedInUsersOnly = isForSignedInUsersOnly
    edit { record in
      let index = signOut.flatMap { record.signOuts.firstIndex(of: $0) }
      if isForSignedInUsersOnly, let signOut {
        // The installation may be another user's, whose own sign-out deletes it.
        if let index { record.signOuts[index].hasLeft = true }
        record.registeredUsers?.remove(signOut.userID)
        record.mayExist =
          record.registeredUsers?.isEmpty == false
          || record.signOuts.contains { $0.hasLeft != true }
      } else {
        if let index { record.signOuts.remove(at: index) }
        (record.mayExist, record.registeredUsers) = (false, nil)
      }
      // A refused installation would be refused again.
      if record.answer?.refusal == nil { record.answer = nil }
    }
  }

  /// Decides after a failed removal that the leaving user's sign-in alone can authorize.
  private mutating func didFail(
    toRemove signOut: DeviceRecord.PendingSignOut, _ failure: RegistrarError, at now: Date,
    jitter: Double
  ) {
    if failure.kind == .unauthorized {
      // The sign-in has ended. The next user's registration replaces the installation.
      didSucceed()
      return edit { record in
        record.signOuts.removeAll { $0 == signOut }
        record.registeredUsers?.remove(signOut.userID)
      }
    }
    if failure.isWorthRetrying { return didFail(failure, at: now, jitter: jitter) }
    refusedSignOut = signOut
    didFail(failure, at: now, jitter: jitter, isRepeated: true)
    guard isReplaceable else { return }
    hold = nil
    scheduleCheck(at: now)
    check?.isUrgent = true
  }

  mutating func didEndSignIn(_ failure: RegistrarError?, at now: Date, jitter: Double) {
    guard case .endingSignIn(let signOut) = activity else { return }
    activity = nil
    if let failure, failure.isWorthRetrying { return didFail(failure, at: now, jitter: jitter) }
    didSucceed()
    edit { record in
      if let index = record.signOuts.firstIndex(of: signOut) { record.signOuts.remove(at: index) }
    }
  }

  /// - Parameter signOuts: The number of sign-outs that the installation without user carries out.
  private mutating func confirm(
    _ installation: Installation, _ revision: Int, _ answer: DeviceRecord.Answer, _ signOuts: Int
  ) {
    guard signOuts == 0 else {
      return edit { $0.signOuts.removeFirst(min(signOuts, $0.signOuts.count)) }
    }
    confirmedInstallation = installation
    confirmation = Confirmation(revision: revision, receipt: answer.receipt)
    guard isForSignedInUsersOnly, let user = installation.userID, !record.signOuts.isEmpty
    else { return }
    // The installation is this user's now: of the former ones' sign-outs the sign-ins are left.
    edit { record in
      guard record.userID == user else { return }
      record.signOuts.removeAll { $0.userID == user }
      for index in record.signOuts.indices { record.signOuts[index].hasLeft = true }
    }
  }

  /// Keeps a refused installation from being sent again. A former user must leave all the same: then
  /// the installation is deleted.
  private mutating func refuse(
    _ fingerprint: String, _ reason: String, _ signOuts: Int, at now: Date
  ) {
    didSucceed()
    edit { record in
      record.answer = .init(fingerprint: fingerprint, at: now, refusal: reason)
      for index in record.signOuts.prefix(signOuts).indices {
        record.signOuts[index].deletesDevice = true
      }
    }
    if signOuts == 0 { _ = signOutFormerUser(deletesDevice: true) }
  }

  /// Signs out a user whom the hub may still have, although another one's registration was to
  /// replace them.
  /// - Returns: Whether there is one.
  private mutating func signOutFormerUser(deletesDevice: Bool) -> Bool {
    let others = (record.registeredUsers ?? []).filter { $0 != record.userID }
    guard let user = others.min(), record.signOuts.isEmpty else { return false }
    edit { record in
      if record.signOuts.isEmpty {
        record.signOuts = [.init(userID: user, deletesDevice: deletesDevice)]
      }
    }
    return true
  }

  private mutating func didSucceed() { (failures, failure, hold) = (0, nil, nil) }

  /// - Parameter isRepeated: Whether it is tried again although that is unlikely to help.
  private mutating func didFail(
    _ error: RegistrarError, at now: Date, jitter: Double, isRepeated: Bool = false
  ) {
    failure = error
    guard error.isWorthRetrying || isRepeated else {
      hold = .event
      return
    }
    failures += 1
    if let asked = error.retryAfter {
      // Devices that were refused together must not return together.
      let delay = min(max(asked.seconds, 0), Self.longestRetryAfter) * (1 + jitter / 5)
      return edit { $0.throttle = Wait(since: now, for: max(delay, 1)) }
    }
    let delay = Self.retryDelays[min(failures, Self.retryDelays.count) - 1] * jitter
    hold = .pause(Wait(since: now, for: max(delay, 1)))
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
    if let throttle = record.throttle {
      let error = failure ?? RegistrarError(.throttled, "the hub asked for a pause")
      return .failed(error, retryAt: throttle.end)
    }
    switch (failure, hold) {
    case (let failure?, .pause(let wait)): return .failed(failure, retryAt: wait.end)
    case (let failure?, .event): return .failed(failure, retryAt: nil)
    default: break
    }
    if !record.signOuts.isEmpty { return .pending }
    if !record.isEnabled {
      return record.mayExist && !isForSignedInUsersOnly ? .pending : .disabled
    }
    if isForSignedInUsersOnly, record.userID == nil { return .waitingForSignIn }
    guard channel != nil else { return .waitingForToken(problem: tokenProblem) }
    guard activity == nil, check == nil, let answer = record.answer else { return .pending }
    if let refusal = answer.refusal {
      return .failed(RegistrarError(.rejected, refusal), retryAt: nil)
    }
    return .saved(answer.receipt)
  }
}

extension DeviceRecord.Answer {
  fileprivate var receipt: SaveReceipt {
    SaveReceipt(fingerprint: String(fingerprint.prefix(8)), confirmedAt: at)
  }
}

extension RegistrarError {
  /// Whether the same request may succeed later.
  package var isWorthRetrying: Bool { kind == .unreachable || kind == .throttled }
}

/// A check that is due some time after the last change, and not too long after the first.
private struct PendingCheck: Hashable {
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

/// A span of a clock that the user may set.
struct Wait: Hashable, Codable, Sendable {
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
