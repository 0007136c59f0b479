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
  /// The place of the record.
  nonisolated let storage: any DeviceStorage
  private let system: any PushSystem
  private let clock: any DeviceClock
  private let configuration: Configuration
  private let enrich: Enrichment?
  private let newID: @Sendable () -> String
  private let jitter: @Sendable () -> Double
  private let broadcast = Broadcast<State>(.waitingForToken(problem: nil))

  /// `nil` until the storage could be read.
  private var machine: InstallationMachine?
  private var knownCondition: StorageCondition?
  /// The channel and the permission, for when the storage can be read.
  private var channel: PushChannel?
  private var permission: PushPermission?
  /// Counts the questions for the permission: only the answer to the last one counts.
  private var permissionChecks = 0
  private var permissionCheck: Task<Void, Never>?
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
    self.init(
      registrar: registrar, storage: storage, system: system, clock: clock,
      configuration: configuration, jitter: jitter, enrich: enrich,
      newID: { UUID().uuidString.lowercased() })
  }

  /// - Parameter newID: Makes the id of a new device, which must be a random one in an app.
  package init(
    registrar: any InstallationRegistrar, storage: any DeviceStorage, system: any PushSystem,
    clock: any DeviceClock = SystemDeviceClock(), configuration: Configuration = Configuration(),
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0...1) },
    enrich: Enrichment? = nil, newID: @escaping @Sendable () -> String
  ) {
    self.newID = newID
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
    if openIfPossible() { await refreshPermission() }
    await system.registerForRemoteNotifications()
  }

  /// Asks the user for the permission to show notifications. A device is registered without it.
  public func requestPermission(
    _ options: PermissionOptions = .standard
  ) async throws -> PushPermission {
    let permission = try await system.requestPermission(options)
    permissionChecks += 1
    set(permission)
    return permission
  }

  /// Called with the token that the system issued, at every launch.
  public func didRegister(deviceToken: Data) { didRegister(.apns(deviceToken)) }

  /// Called with the channel that another push service than APNs issued.
  public func didRegister(_ channel: PushChannel) {
    self.channel = channel
    let wasOpen = machine != nil
    guard openIfPossible() else { return }
    if wasOpen { machine?.didRegister(channel, at: clock.now) }
    proceed()
  }

  /// Called when the system issued no token.
  public func didFailToRegister(_ error: any Error) {
    guard openIfPossible() else { return }
    machine?.didFailToRegister("\(error)")
    proceed()
  }

  /// Called when the device was unlocked for the first time since it started.
  public func protectedDataDidBecomeAvailable() async {
    guard openIfPossible() else { return }
    proceed()
    await refreshPermission()
  }

  /// Called when the app comes to the foreground, or when the network is back: tries again at once
  /// if there was a failure, and looks for changes by an extension or in the Settings app.
  public func didEnterForeground() async {
    guard openIfPossible() else { return }
    try? edit { _ in }
    machine?.didEnterForeground(at: clock.now)
    await refreshPermission()
    proceed()
  }

  /// Called when the app leaves the foreground: sends without further delay. ``settled(within:)``
  /// waits for the end of that.
  public func willLeaveForeground() {
    machine?.flush(isRetry: false)
    proceed()
  }

  private func refreshPermission() async {
    guard configuration.tagsPermission else { return }
    permissionChecks += 1
    let number = permissionChecks
    let permission = await system.permission()
    if number == permissionChecks { set(permission) }
  }

  private func set(_ permission: PushPermission) {
    self.permission = permission
    machine?.set(permission, at: clock.now)
    proceed()
  }

  // MARK: What the app wants

  /// The id under which the hub knows this device; `nil` while the storage is locked.
  public var installationID: String? {
    (try? open())?.installationID
  }

  /// The condition in which this launch found the storage; `nil` while it is locked.
  public var storageCondition: StorageCondition? {
    openIfPossible() ? knownCondition : nil
  }

  /// The desired installation, without channel and user.
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

  /// Adds a tag of the device.
  public func insert(_ tag: Tag) throws(StorageError) { try update { $0.tags.insert(tag) } }

  /// Removes a tag of the device.
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
        record.signOuts.append(.init(userID: former, deletesDevice: false))
      }
      (record.userID, record.userTags) = (userID, tags)
    }
    machine?.didSignIn(at: clock.now)
    proceed()
  }

  /// Removes the user and their tags: on this device at once, at the hub before anything else is
  /// sent, in this launch or a later one.
  public func signOut(_ mode: SignOutMode = .keepDevice) throws(StorageError) {
    try edit(urgently: true) { record in
      guard let userID = record.userID else { return }
      record.signOuts.append(.init(userID: userID, deletesDevice: mode == .deleteDevice))
      (record.userID, record.userTags) = (nil, [])
    }
    try? storage.save(nil, as: .seenNotifications)
    proceed()
  }

  /// Removes the device of a user who is not signed in any more, for a sign-in that an earlier
  /// installation of the app has left. Without effect if the user is signed in or leaving already.
  package func endSignIn(of userID: String) throws(StorageError) {
    try edit { record in
      guard record.userID != userID, !record.signOuts.contains(where: { $0.userID == userID })
      else { return }
      record.signOuts.append(.init(userID: userID, deletesDevice: false))
    }
    proceed()
  }

  /// Returns when the hub, or the backend, has heard of every sign-out.
  /// - Throws: ``StorageError``; ``RegistrarError`` if it has not: it will, before anything else.
  public func finishSignOut() async throws {
    // Another process may have signed somebody out.
    try edit { _ in }
    machine?.flush(isRetry: true)
    proceed()
    await settled()
    guard machine?.record.signOuts.isEmpty == false else { return }
    guard case .failed(let error, _) = state else { throw NotRegistered(state: state) }
    throw error
  }

  /// The signed-in user, for an extension, which needs no installation of its own.
  package static func storedUserID(
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

  /// Sends what is pending now, and returns when the hub has it. Changes that come during the call
  /// are not waited for.
  ///
  /// - Throws: ``StorageError``; ``RegistrarError``; ``NotRegistered`` if there is nothing to
  ///   register yet.
  @discardableResult
  public func synchronize() async throws -> SaveReceipt {
    try open()
    let revision = machine?.revision ?? 0
    while true {
      machine?.flush(isRetry: true)
      proceed()
      let isWorking = work != nil || permissionCheck != nil
      await settled()
      switch state {
      case .saved(let receipt): return receipt
      case _ where machine?.hasChanged(since: revision) == true:
        if let receipt = machine?.confirmation?.receipt { return receipt }
      case .failed(let error, _): throw error
      case .pending where isWorking: continue
      case let state: throw NotRegistered(state: state)
      }
    }
  }

  /// Compares the hub's installation with the one that this device sent, and sends it again if they
  /// differ. For diagnostics: one or two requests.
  ///
  /// - Returns: The members that differed; `installationId` if the hub had none.
  /// - Throws: The errors of ``synchronize()``; ``RegistrarError/Kind/unsupported`` with a backend.
  public func verify() async throws -> Set<String> {
    try await synchronize()
    guard let sent = machine?.confirmedInstallation else { return [] }
    var differences: Set<String> = ["installationId"]
    if let kept = try await registrar.installation(sent.installationID) {
      differences = kept.differences(from: sent)
    }
    if !differences.isEmpty {
      machine?.discardAnswer()
      try await synchronize()
    }
    return differences
  }

  /// Returns when no request is under way.
  public func settled() async {
    while true {
      if let permissionCheck { await permissionCheck.value }
      guard let work else {
        if permissionCheck == nil { return }
        continue
      }
      await work.value
    }
  }

  /// Returns when no request is under way, or after a time: that which the system grants in the
  /// background, for example.
  public func settled(within limit: Duration) async {
    _ = await clock.result(before: clock.now.addingTimeInterval(limit.seconds)) {
      await self.settled()
    }
  }

  // MARK: Acting

  /// The longest time for a request, and for the app's addition before it. A reply that arrives byte
  /// by byte would last forever.
  static let attemptLimit = Duration.seconds(60)

  /// Reads the storage, unless that has been done.
  @discardableResult
  private func open() throws(StorageError) -> DeviceRecord {
    if let machine { return machine.record }
    do {
      let (record, condition) = try DeviceRecord.open(in: storage, newID: newID)
      let facts = system.facts
      var machine = InstallationMachine(
        record: record, configuration: configuration,
        context: "\(registrar.address)\n\(facts.appVersion)\n\(facts.systemVersion)",
        isForSignedInUsersOnly: registrar.isForSignedInUsersOnly)
      if let permission { machine.set(permission, at: clock.now) }
      if let channel { machine.didRegister(channel, at: clock.now) }
      self.machine = machine
      knownCondition = condition
      return record
    } catch {
      publish(error)
      throw error
    }
  }

  private func openIfPossible() -> Bool { (try? open()) != nil }

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
    // Another process may have carried out a removal, or signed the user in again.
    if work == nil, machine?.mayDelete == true { try? edit { _ in } }
    if work == nil, var machine {
      timer?.cancel()
      timer = nil
      let step = machine.next(at: clock.now)
      self.machine = machine
      switch step {
      case .prepare(let installation): work = Task { await save(installation) }
      case .delete(let id, let userID): work = Task { await delete(id, of: userID) }
      case .endSignIn(let userID): work = Task { await endSignIn(atRegistrarOf: userID) }
      case .wait(let time):
        timer = clock.call(at: time) { [weak self] in await self?.timeIsUp() }
      case .rest:
        if machine.needsPermission, permissionCheck == nil {
          permissionCheck = Task {
            await refreshPermission()
            permissionCheck = nil
          }
        }
      }
    }
    publish()
  }

  private func timeIsUp() async {
    proceed()
    await settled()
  }

  private func save(_ prepared: Installation) async {
    var enriched: Installation? = prepared
    if let enrich {
      let addition = await attempt { () async throws(RegistrarError) -> Installation in
        var installation = prepared
        do { try await enrich(&installation) } catch {
          throw RegistrarError(.unreachable, "\(error)")
        }
        return installation
      }
      switch addition {
      case .success(let installation): enriched = installation
      case .failure(let error):
        enriched = machine?.didFailToPrepare(error.detail, at: clock.now, jitter: jitter())
      }
    }
    guard let enriched, let ready = machine?.prepared(enriched, at: clock.now) else {
      return endWork()
    }
    // The hub may have it from here on. A request that nobody would remember is not made.
    do { try store() } catch {
      machine?.didFailToSend("not sent", at: clock.now, jitter: jitter())
      return endWork()
    }
    publish()
    let failure = await failure(of: { [registrar] () async throws(RegistrarError) in
      try await registrar.save(ready)
    })
    machine?.didSave(failure, at: clock.now, jitter: jitter())
    endWork()
  }

  private func delete(_ id: String, of userID: String?) async {
    publish()
    let failure = await failure(of: { [registrar] () async throws(RegistrarError) in
      try await registrar.delete(installation: id, of: userID)
    })
    machine?.didDelete(failure, at: clock.now, jitter: jitter())
    endWork()
  }

  private func endSignIn(atRegistrarOf userID: String) async {
    publish()
    let failure = await failure(of: { [registrar] () async throws(RegistrarError) in
      try await registrar.endSignIn(of: userID)
    })
    machine?.didEndSignIn(failure, at: clock.now, jitter: jitter())
    endWork()
  }

  private func failure(
    of request: @escaping @Sendable () async throws(RegistrarError) -> Void
  ) async -> RegistrarError? {
    if case .failure(let error) = await attempt(request) { error } else { nil }
  }

  /// Returns the result of an attempt, or an error when its time is over; it is cancelled then.
  private func attempt<Success: Sendable>(
    _ request: @escaping @Sendable () async throws(RegistrarError) -> Success
  ) async -> Result<Success, RegistrarError> {
    let end = clock.now.addingTimeInterval(Self.attemptLimit.seconds)
    let result = await clock.result(before: end) { () -> Result<Success, RegistrarError>? in
      do throws(RegistrarError) { return .success(try await request()) } catch {
        return .failure(error)
      }
    }
    return result ?? .failure(RegistrarError(.unreachable, "no end within a minute"))
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

extension Installation {
  /// The members in which the hub's installation differs from the one that was sent.
  fileprivate func differences(from sent: Installation) -> Set<String> {
    var differences: Set<String> = []
    if pushChannel.handle != sent.pushChannel.handle { differences.insert("pushChannel") }
    if pushChannelExpired { differences.insert("pushChannelExpired") }
    if userID != sent.userID { differences.insert("userId") }
    if Set(tags) != Set(sent.tags) { differences.insert("tags") }
    if pushVariables != sent.pushVariables { differences.insert("pushVariables") }
    // A hub may add members of its own to a template.
    let isSame =
      templates.count == sent.templates.count
      && sent.templates.allSatisfy { name, template in
        templates[name].map { $0.body == template.body && Set($0.tags) == Set(template.tags) }
          == true
      }
    if !isSame { differences.insert("templates") }
    return differences
  }
}
