public import Foundation
public import NotificationHubs

/// Keeps this device registered, through token changes, reinstallations, sign-ins and flights
/// without network.
///
/// ```swift
/// let push = PushInstallation(
///   registrar: BackendRegistrar(backend: url, token: session.token),
///   storage: AppGroupStorage(group: "group.example.news"), system: UserNotificationSystem())
/// await push.start()               // at every launch
/// try await push.insert("news")
/// ```
/// The app says what it wants; ``states`` says what the hub has. Changes are stored before they are
/// sent, and none is lost with the process.
public actor PushInstallation {
  /// Adds to the installation before it is sent, the public key of `PushDeviceSecure` for example.
  public typealias Enrichment = @Sendable (inout Installation) async throws -> Void

  private let registrar: any InstallationRegistrar
  private let storage: any DeviceStorage
  private let system: any PushSystem
  private let clock: any DeviceClock
  private let configuration: Configuration
  private let enrich: Enrichment?
  private let jitter: @Sendable () -> Double
  private let broadcast = Broadcast<State>(.waitingForToken(problem: nil))

  /// `nil` until the storage could be read.
  private var machine: InstallationMachine?
  private var knownBeginning: Beginning?
  /// A token that came while the storage was locked.
  private var waitingChannel: PushChannel?
  private var work: Task<Void, Never>?
  private var timer: ScheduledCall?

  /// - Parameters:
  ///   - enrich: Called before each save; the result decides whether there is anything to send.
  ///   - jitter: Random numbers from 0 to 1 that spread retries.
  public init(
    registrar: any InstallationRegistrar, storage: any DeviceStorage, system: any PushSystem,
    clock: any DeviceClock = SystemDeviceClock(), configuration: Configuration = Configuration(),
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0...1) },
    enrich: Enrichment? = nil
  ) {
    self.registrar = registrar
    self.storage = storage
    self.system = system
    self.clock = clock
    self.configuration = configuration
    self.jitter = jitter
    self.enrich = enrich
  }

  // MARK: Launch and the system's callbacks

  /// Reads the storage and asks the system for a token. Call it at every launch.
  public func start() async {
    if isOpen { await lookAtPermission() }
    await system.registerForRemoteNotifications()
  }

  /// Asks the user for the permission to show notifications. A device is registered without it.
  public func requestPermission(
    _ options: PermissionOptions = .standard
  ) async throws -> PushPermission {
    let permission = try await system.requestPermission(options)
    await lookAtPermission()
    return permission
  }

  /// Called with the token that the system issued, at every launch.
  public func didRegister(deviceToken: Data) { didRegister(.apns(deviceToken)) }

  /// Called with the channel that another push service than APNs issued.
  public func didRegister(_ channel: PushChannel) {
    waitingChannel = channel
    guard isOpen else { return }
    takeWaitingChannel()
    proceed()
  }

  /// Called when the system issued no token.
  public func didFailToRegister(_ error: any Error) {
    guard isOpen else { return }
    machine?.didFailToRegister("\(error)")
    proceed()
  }

  /// Called when the device was unlocked for the first time since it started.
  public func protectedDataDidBecomeAvailable() {
    guard isOpen else { return }
    takeWaitingChannel()
    proceed()
  }

  /// Called when the app comes to the foreground, or when the network is back: tries again at once
  /// if there was a failure, and looks at what an extension or the Settings app have changed.
  public func didEnterForeground() async {
    guard isOpen else { return }
    takeWaitingChannel()
    try? edit { _ in }
    machine?.didEnterForeground(at: clock.now)
    await lookAtPermission()
    proceed()
  }

  /// Called when the app leaves the foreground: sends without further delay.
  public func willLeaveForeground() {
    machine?.flush(isRetry: false)
    proceed()
  }

  private func lookAtPermission() async {
    guard configuration.tagsPermission else { return }
    let permission = await system.permission()
    machine?.set(permission, at: clock.now)
    proceed()
  }

  // MARK: What the app wants

  /// The id under which the hub knows this device; `nil` while the storage is locked.
  public var installationID: String? {
    (try? open())?.installationID
  }

  /// The condition in which this launch found the storage; `nil` while it is locked.
  public var beginning: Beginning? {
    isOpen ? knownBeginning : nil
  }

  /// The app's wishes for this device at the hub, besides the user.
  public var desired: DesiredInstallation {
    get throws(StorageError) { try open().desired }
  }

  /// The signed-in user.
  public var userID: String? {
    get throws(StorageError) { try open().userID }
  }

  /// Changes tags, templates and variables. Changes of another process since are kept.
  ///
  /// - Throws: ``StorageError``; nothing has changed then.
  public func update(
    _ change: @escaping @Sendable (inout DesiredInstallation) -> Void
  ) throws(StorageError) {
    try edit { change(&$0.desired) }
    proceed()
  }

  public func insert(_ tag: Tag) throws(StorageError) { try update { $0.tags.insert(tag) } }

  public func remove(_ tag: Tag) throws(StorageError) { try update { $0.tags.remove(tag) } }

  /// - Parameter template: `nil` removes the template.
  public func setTemplate(_ template: PushTemplate?, named name: String) throws(StorageError) {
    try update { $0.templates[name] = template }
  }

  /// Registers the device for a user from now on. Another user is signed out first.
  /// - Parameter tags: Tags that leave with the user.
  public func signIn(as userID: String, tags: Set<Tag> = []) throws(StorageError) {
    let leavesFirst = registrar.isForSignedInUsersOnly
    try edit(urgently: true) { record in
      if leavesFirst, let former = record.userID, former != userID {
        record.departures.append(.init(userID: former, deletesDevice: false))
      }
      (record.userID, record.userTags) = (userID, tags)
    }
    proceed()
  }

  /// Removes the user and their tags: on this device at once, at the hub before anything else is
  /// sent, in this launch or a later one.
  public func signOut(_ mode: SignOutMode = .keepDevice) throws(StorageError) {
    try edit(urgently: true) { record in
      guard let userID = record.userID else { return }
      record.departures.append(.init(userID: userID, deletesDevice: mode == .deleteDevice))
      (record.userID, record.userTags) = (nil, [])
    }
    proceed()
  }

  /// Removes the device of a user who is not signed in any more, for a sign-in that an earlier
  /// installation of the app has left. Without effect if the user is signed in or leaving already.
  public func endSignIn(of userID: String) throws(StorageError) {
    try edit { record in
      guard record.userID != userID, !record.departures.contains(where: { $0.userID == userID })
      else { return }
      record.departures.append(.init(userID: userID, deletesDevice: false))
    }
    proceed()
  }

  /// Returns when the hub, or the backend, has heard of every sign-out.
  /// - Throws: ``StorageError``; ``RegistrarError`` if it has not: it will, before anything else.
  public func finishSignOut() async throws {
    try open()
    machine?.flush(isRetry: true)
    proceed()
    await settled()
    guard machine?.record.departures.isEmpty == false else { return }
    guard case .failed(let error, _) = state else { throw NotRegistered(state: state) }
    throw error
  }

  /// The signed-in user, for an extension, which needs no installation of its own.
  public static func storedUserID(
    in storage: any DeviceStorage
  ) throws(StorageError) -> String? {
    try DeviceRecord.userID(in: storage)
  }

  /// Whether a push is for the user of this device. One for a user who has signed out may still
  /// arrive, and must not be shown.
  public func isForThisDevice(_ message: PushMessage) -> Bool {
    guard let user = message.userID else { return true }
    return (try? open())?.userID == user
  }

  /// Whether the device is registered; the app's own switch for pushes.
  public var isEnabled: Bool {
    get throws(StorageError) { try open().isEnabled }
  }

  /// Deletes the installation at the hub, or registers it again with everything that the app wants.
  public func setEnabled(_ isEnabled: Bool) throws(StorageError) {
    try edit(urgently: true) { $0.isEnabled = isEnabled }
    proceed()
  }

  // MARK: The hub's side

  /// The present state.
  public var state: State { broadcast.latest }

  /// The present state and all later ones.
  public nonisolated var states: AsyncStream<State> { broadcast.stream() }

  /// Sends what is pending now, and returns when the hub has it.
  ///
  /// - Throws: ``StorageError``; ``RegistrarError``; ``NotRegistered`` if there is nothing to
  ///   register yet.
  @discardableResult
  public func synchronize() async throws -> SaveReceipt {
    try open()
    takeWaitingChannel()
    machine?.flush(isRetry: true)
    proceed()
    await settled()
    switch state {
    case .saved(let receipt): return receipt
    case .failed(let error, _): throw error
    case let state: throw NotRegistered(state: state)
    }
  }

  /// Compares the hub's installation with the one that this device sent, and sends it again if they
  /// differ. For diagnostics: one or two requests.
  ///
  /// - Returns: The members that differed; `installationId` if the hub had none.
  /// - Throws: The errors of ``synchronize()``.
  public func verify() async throws -> Set<String> {
    try await synchronize()
    guard let machine, let channel = machine.channel else { return [] }
    let record = machine.record
    var differences: Set<String> = []
    if let kept = try await registrar.installation(record.installationID) {
      if kept.pushChannel.handle != channel.handle { differences.insert("pushChannel") }
      if kept.pushChannelExpired { differences.insert("pushChannelExpired") }
      if kept.userID != record.userID { differences.insert("userId") }
      if !record.desired.tags.union(record.userTags).isSubset(of: kept.tags) {
        differences.insert("tags")
      }
      if kept.templates.mapValues(\.body) != record.desired.templates.mapValues(\.body) {
        differences.insert("templates")
      }
    } else {
      differences.insert("installationId")
    }
    if !differences.isEmpty {
      self.machine?.distrust()
      try await synchronize()
    }
    return differences
  }

  /// Returns when no request is under way.
  public func settled() async { while let work { await work.value } }

  // MARK: Acting

  /// Reads the storage, unless that has been done.
  @discardableResult
  private func open() throws(StorageError) -> DeviceRecord {
    if let machine { return machine.record }
    do {
      let (record, beginning) = try DeviceRecord.open(in: storage) {
        UUID().uuidString.lowercased()
      }
      let facts = system.facts
      machine = InstallationMachine(
        record: record, configuration: configuration,
        context: "\(registrar.address)\n\(facts.appVersion)\n\(facts.systemVersion)",
        isForSignedInUsersOnly: registrar.isForSignedInUsersOnly)
      knownBeginning = beginning
      return record
    } catch {
      publish(error)
      throw error
    }
  }

  private var isOpen: Bool { (try? open()) != nil }

  private func takeWaitingChannel() {
    guard let channel = waitingChannel, machine != nil else { return }
    waitingChannel = nil
    machine?.didRegister(channel, at: clock.now)
  }

  /// Changes the stored record.
  private func edit(
    urgently: Bool = false, _ change: @escaping DeviceRecord.Edit
  ) throws(StorageError) {
    let known = try open()
    let stored = try DeviceRecord.apply(
      (machine?.edits ?? []) + [change], to: known, in: storage)
    machine?.adopt(stored, at: clock.now, urgently: urgently)
  }

  /// Stores what the machine has noted. If that fails, it stays noted.
  private func store() throws(StorageError) {
    guard let machine, !machine.edits.isEmpty else { return }
    do { try edit { _ in } } catch {
      self.machine?.didFailToStore(error)
      throw error
    }
  }

  /// Takes the next step, unless a request is under way, which takes it at its end.
  private func proceed() {
    // A confirmation that is not stored is asked for again after a crash, which does no harm.
    try? store()
    if work == nil, var machine {
      timer?.cancel()
      timer = nil
      let step = machine.next(at: clock.now)
      self.machine = machine
      switch step {
      case .prepare(let installation): work = Task { await save(installation) }
      case .delete(let id, let userID): work = Task { await delete(id, of: userID) }
      case .wait(let time):
        timer = clock.call(at: time) { [weak self] in await self?.timeIsUp() }
      case .rest: break
      }
    }
    publish()
  }

  private func timeIsUp() async {
    proceed()
    await settled()
  }

  private func save(_ prepared: Installation) async {
    var installation = prepared
    do { try await enrich?(&installation) } catch {
      machine?.didFailToPrepare("\(error)", at: clock.now, jitter: jitter())
      return endWork()
    }
    guard let ready = machine?.prepared(installation, at: clock.now) else { return endWork() }
    // The hub may have it from here on. A request that nobody would remember is not made.
    do { try store() } catch {
      machine?.didFailToSend(at: clock.now, jitter: jitter())
      return endWork()
    }
    publish()
    var failure: RegistrarError?
    do throws(RegistrarError) { try await registrar.save(ready) } catch { failure = error }
    machine?.didSave(failure, at: clock.now, jitter: jitter())
    endWork()
  }

  private func delete(_ id: String, of userID: String?) async {
    publish()
    var failure: RegistrarError?
    do throws(RegistrarError) {
      try await registrar.delete(installation: id, of: userID)
    } catch { failure = error }
    machine?.didDelete(failure, at: clock.now, jitter: jitter())
    endWork()
  }

  private func endWork() {
    work = nil
    proceed()
  }

  private func publish(_ error: StorageError? = nil) {
    switch error {
    case .locked: broadcast.send(.locked)
    case .failed(let reason): broadcast.send(.storageFailed(reason))
    case nil: if let machine { broadcast.send(machine.state) }
    }
  }
}
