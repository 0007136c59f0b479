import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

@Suite("Any order of events")
struct AnyOrderTests {
  /// Three thousand were run when this was written.
  private let seeds: UInt64 = 150

  @Test(
    "at the end the hub holds what the app asked for, with no needless request",
    arguments: [false, true])
  func anyOrder(isBackend: Bool) async throws {
    for seed in UInt64(1)...seeds {
      var life = DeviceLife(seed: seed, isBackend: isBackend)
      for _ in 1...40 { await life.event() }
      await life.end()
      let place = "seed \(seed), \(life.log.joined(separator: ", "))"
      #expect(life.hub.installations == life.wanted, "\(place)")
      #expect(life.hub.sessions == life.wantedSessions, "\(place)")
      #expect(life.strangers.isEmpty, "a former user is still registered: \(place)")
      #expect(!life.hasLied, "the state said that the hub has what the app wants: \(place)")
      #expect(life.neighbours.isEmpty, "a user's tag stands with another user: \(place)")
      #expect(life.needless <= life.excuses, "needless requests: \(place)")
    }
  }

  @Test("without crashes, lost replies and jumps of the clock no request is needless")
  func noFaults() async throws {
    for seed in UInt64(1)...100 {
      var life = DeviceLife(seed: seed, isBackend: false, hasFaults: false)
      for _ in 1...40 { await life.event() }
      await life.end()
      #expect(life.hub.installations == life.wanted)
      #expect(life.needless == 0, "seed \(seed), \(life.log.joined(separator: ", "))")
    }
  }
}

/// A device to which things happen at random, and the app's own record of what it asked for.
struct DeviceLife {
  /// The part of the world that one process reaches; none once it is killed.
  private struct Process: DeviceStorage, InstallationRegistrar {
    let storage: FakeStorage
    let hub: FakeRegistrar
    let isAlive = Flag(true)

    func installation(
      _ system: FakeSystem, _ clock: ManualDeviceClock, _ isAdditionFailing: Flag
    ) -> PushInstallation {
      PushInstallation(
        registrar: self, storage: self, system: system, clock: clock, jitter: { 0.5 },
        enrich: { _ in
          if isAdditionFailing.isSet { throw CocoaError(.featureUnsupported) }
        })
    }

    var address: String { hub.address }
    var isForSignedInUsersOnly: Bool { hub.isForSignedInUsersOnly }

    func load(_ item: StoredItem) throws(StorageError) -> Data? {
      guard isAlive.isSet else { throw .failed("killed") }
      return try storage.load(item)
    }
    func update(_ item: StoredItem, _ change: (inout Data?) -> Void) throws(StorageError) {
      guard isAlive.isSet else { throw .failed("killed") }
      try storage.update(item, change)
    }
    func save(_ installation: Installation) async throws(RegistrarError) {
      guard isAlive.isSet else { throw RegistrarError(.forbidden, "killed") }
      try await hub.save(installation)
    }
    func delete(installation id: String, of userID: String?) async throws(RegistrarError) {
      guard isAlive.isSet else { throw RegistrarError(.forbidden, "killed") }
      try await hub.delete(installation: id, of: userID)
    }
    func endSignIn(of userID: String) async throws(RegistrarError) {
      guard isAlive.isSet else { throw RegistrarError(.unreachable, "killed") }
      try await hub.endSignIn(of: userID)
    }
  }

  let hub: FakeRegistrar
  private let storage = FakeStorage()
  private let clock = ManualDeviceClock()
  private let system = FakeSystem()
  private let hasFaults: Bool
  private var process: Process
  private var push: PushInstallation
  /// Another process of the same app, which has no token.
  private var helper: PushInstallation
  private let isAdditionFailing = Flag()
  private var random: SeededRandom

  private var token: UInt8 = 1
  private var tags: Set<NotificationHubs.Tag> = []
  private var user: String?
  /// Whether the user's tags are such that no hub accepts them.
  private var isFaulty = false
  private var isEnabled = true
  /// Crashes, jumps of the clock and the like, each of which can repeat one request.
  private var repetitions = 0
  private(set) var log: [String] = []

  init(seed: UInt64, isBackend: Bool, hasFaults: Bool = true) {
    hub = FakeRegistrar(keepsSessions: isBackend)
    random = SeededRandom(state: seed)
    self.hasFaults = hasFaults
    process = Process(storage: storage, hub: hub)
    push = process.installation(system, clock, isAdditionFailing)
    helper = process.installation(system, clock, isAdditionFailing)
  }

  /// What the hub should hold in the end.
  var wanted: [String: Installation] {
    guard isEnabled, !hub.isForSignedInUsersOnly || user != nil else { return [:] }
    let id = String(decoding: storage[.installationID] ?? Data(), as: UTF8.self)
    let all = tags.union(user.map { [NotificationHubs.Tag(rawValue: "of:\($0)")] } ?? [])
    return [
      id: Installation(
        installationID: id, userID: user, platform: .apns, pushChannel: .apns(.token(token)),
        tags: all.sorted { $0.folded < $1.folded })
    ]
  }

  /// The sessions that the backend should have in the end.
  var wantedSessions: Set<String> {
    hub.isForSignedInUsersOnly ? Set([user].compactMap(\.self)) : []
  }

  /// Whether the other process sends, too, as one does that has the token. At a backend a
  /// registration could arrive between the removal and the end of the sign-in.
  private var hasTwoSenders: Bool { hasFaults && !hub.isForSignedInUsersOnly }

  /// Installations of users who are not signed in, when time had passed and all but the app's
  /// addition worked again.
  private(set) var strangers: [Installation] = []
  /// Whether the state was `saved` while the hub had something else.
  private(set) var hasLied = false
  /// Whether the other process has changed something that the app need not have seen.
  private var hasHelperActed = false

  /// Installations that the hub had with one user's tag and another user.
  var neighbours: [Installation] {
    hub.requests.compactMap { request in
      guard case .save(let installation) = request else { return nil }
      let owners = installation.tagNames.filter { $0.hasPrefix("of:") }
      return owners == Set([installation.userID].compactMap { $0.map { "of:\($0)" } })
        ? nil : installation
    }
  }

  /// How many requests may have been repeated without need.
  var excuses: Int { hub.lostReplies + repetitions }

  /// The number of requests that changed nothing at the hub. At the backend, a sign-out is never
  /// one of them: it ends the user's session, too.
  var needless: Int {
    var present: [String: Installation] = [:]
    var count = 0
    for request in hub.requests {
      switch request {
      case .save(let installation):
        if present[installation.installationID] == installation { count += 1 }
        present[installation.installationID] = installation
      case .delete(let id, _):
        let wasThere = present.removeValue(forKey: id) != nil
        if !wasThere, !hub.isForSignedInUsersOnly { count += 1 }
      case .endSignIn: break
      }
    }
    return count
  }

  mutating func event() async {
    let isFault = hasFaults && random.below(3) == 0
    let kind = isFault ? 10 + random.below(12) : random.below(10)
    switch kind {
    case 0:
      token = UInt8(1 + random.below(4))
      note("token \(token)")
      await push.didRegister(deviceToken: .token(token))
      if hasTwoSenders {
        repetitions += 1
        await helper.didRegister(deviceToken: .token(token))
      }
    case 1, 2:
      let tag = NotificationHubs.Tag(rawValue: "t\(random.below(4))")
      let isInserted = random.below(2) == 0
      guard
        await succeeds(
          "\(isInserted ? "+" : "-")\(tag)",
          {
            try await isInserted ? $0.insert(tag) : $0.remove(tag)
          })
      else { return }
      if isInserted { tags.insert(tag) } else { tags.remove(tag) }
    case 3:
      await signIn(as: ["anna", "bob"][random.below(2)], on: push, "")
    case 4:
      guard await succeeds("out", { try await $0.signOut() }) else { return }
      (user, isFaulty) = (nil, false)
    case 5:
      let isEnabled = random.below(4) > 0
      guard await succeeds(isEnabled ? "on" : "off", { try await $0.setEnabled(isEnabled) })
      else { return }
      self.isEnabled = isEnabled
      // After a request without an answer the device has to be deleted, wherever it got lost.
      if !isEnabled, hub.attempts > hub.requests.count { repetitions += 1 }
    case 6, 7:
      let seconds = [0.3, 2, 60, 3_600][random.below(4)]
      note("\(seconds) s")
      await clock.advance(by: .seconds(seconds))
    case 8:
      note("foreground")
      await push.didEnterForeground()
    case 9:
      let tag = NotificationHubs.Tag(rawValue: "t\(random.below(4))")
      guard await succeeds("helper +\(tag)", on: helper, { try await $0.insert(tag) }) else {
        return
      }
      tags.insert(tag)
      hasHelperActed = true
      if hasTwoSenders { repetitions += 1 }
      await helper.settled()
    case 10: await crash()
    case 11:
      note("offline")
      hub.answer = .offline
    case 12:
      note("lost replies")
      hub.answer = .lostReply
    case 13:
      note("busy")
      hub.answer = .failure(RegistrarError(status: 503, "", retryAfter: .seconds(30)))
    case 14:
      let seconds = [-7_200.0, 7_200, -1e7, 1e7][random.below(4)]
      note("clock \(seconds)")
      clock.step(by: seconds)
      repetitions += 1
    case 15:
      note(storage.error == nil ? "locked" : "unlocked")
      // A request that could not be noted was not made, and counts as made.
      repetitions += 1
      storage.error = storage.error == nil ? .locked : nil
      if storage.error == nil { await push.protectedDataDidBecomeAvailable() }
    case 16:
      note("the addition \(isAdditionFailing.isSet ? "works" : "fails")")
      repetitions += 1
      isAdditionFailing.isSet.toggle()
    case 17:
      await signIn(as: ["anna", "bob"][random.below(2)], on: push, "", isFaulty: true)
    case 18:
      let refusal = RegistrarError(status: random.below(2) == 0 ? 400 : 403, "refused")
      note(hub.refusalOfRegistrations == nil ? "registrations \(refusal.kind)" : "accepted")
      repetitions += 1
      hub.refusalOfRegistrations = hub.refusalOfRegistrations == nil ? refusal : nil
    case 19:
      note(hub.refusalOfRemovals == nil ? "removals refused" : "removals accepted")
      repetitions += 1
      let refusal = RegistrarError(status: 405, "refused")
      hub.refusalOfRemovals = hub.refusalOfRemovals == nil ? refusal : nil
    case 20: await otherProcess()
    default:
      note("online")
      hub.answer = .success
    }
    if hasFaults, random.below(3) == 0 { return }
    await settle()
  }

  private func settle() async {
    await push.settled()
    await helper.settled()
  }

  /// The other process does what an app does, at the same time.
  private mutating func otherProcess() async {
    repetitions += 2
    hasHelperActed = true
    switch random.below(hub.isForSignedInUsersOnly ? 2 : 3) {
    case 0:
      if await succeeds("helper out", on: helper, { try await $0.signOut() }) {
        (user, isFaulty) = (nil, false)
      }
    case 1:
      let isEnabled = random.below(2) == 0
      if await succeeds(
        "helper \(isEnabled ? "on" : "off")", on: helper, { try await $0.setEnabled(isEnabled) })
      {
        self.isEnabled = isEnabled
      }
    default: await signIn(as: ["anna", "bob"][random.below(2)], on: helper, "helper ")
    }
  }

  /// Signs a user in, as an app does: not before the former one has left the backend.
  private mutating func signIn(
    as name: String, on installation: PushInstallation, _ place: String, isFaulty: Bool = false
  ) async {
    guard storage.error == nil else { return }
    if hub.isForSignedInUsersOnly {
      do { try await installation.finishSignOut() } catch let error as RegistrarError
        where error.kind != .unreachable && error.kind != .throttled
      {} catch { return note("\(place)in \(name) not yet") }
      hub.beginSession(of: name)
    }
    var tags: Set<NotificationHubs.Tag> = [NotificationHubs.Tag(rawValue: "of:\(name)")]
    if isFaulty { tags.insert("not a tag!") }
    let allTags = tags
    guard
      await succeeds(
        "\(place)in \(name)\(isFaulty ? " faulty" : "")", on: installation,
        { try await $0.signIn(as: name, tags: allTags) })
    else { return }
    (user, self.isFaulty) = (name, isFaulty)
  }

  /// The process is killed while a request is under way, if there is one; then the app starts.
  private mutating func crash() async {
    note("crash")
    repetitions += 1
    let killed = process
    if random.below(2) == 0 {
      hub.hold()
      await push.willLeaveForeground()
      if await push.state == .saving { await hub.heldRequest() }
    }
    killed.isAlive.isSet = false
    clock.endProcess()
    hub.release()
    await settle()
    clock.endProcess()
    process = Process(storage: storage, hub: hub)
    push = process.installation(system, clock, isAdditionFailing)
    helper = process.installation(system, clock, isAdditionFailing)
    await push.start()
    await push.didRegister(deviceToken: .token(token))
  }

  /// Everything works, and time passes.
  mutating func end() async {
    note("end")
    (storage.error, hub.answer) = (nil, .success)
    (hub.refusalOfRegistrations, hub.refusalOfRemovals) = (nil, nil)
    await settle()
    let wasAdditionFailing = isAdditionFailing.isSet
    isAdditionFailing.isSet = true
    let late: NotificationHubs.Tag = "late"
    try? await push.insert(late)
    tags.insert(late)
    await clock.advance(by: .seconds(3))
    isAdditionFailing.isSet = false
    // Longer than any retry, and shorter than the refresh.
    await clock.advance(by: .seconds(3_600))
    isAdditionFailing.isSet = wasAdditionFailing
    hasLied = await push.state.isSaved && !hasHelperActed && hub.installations != wanted
    for process in [push, helper] { await process.protectedDataDidBecomeAvailable() }
    await push.didRegister(deviceToken: .token(token))
    await pass()
    strangers = hub.installations.values.filter { $0.userID != nil && $0.userID != user }
    isAdditionFailing.isSet = false
    // A refused installation is sent again when something has changed.
    let end: NotificationHubs.Tag = "end"
    try? await push.insert(end)
    tags.insert(end)
    await pass()
    guard isFaulty, let user else { return }
    await signIn(as: user, on: push, "")
    await pass()
  }

  private func pass() async {
    for process in [push, helper, push] {
      await process.didEnterForeground()
      await settle()
      await clock.advance(by: .seconds(120))
    }
  }

  private mutating func note(_ event: String) { log.append(event) }

  private mutating func succeeds(
    _ event: String, on installation: PushInstallation? = nil,
    _ change: (PushInstallation) async throws -> Void
  ) async -> Bool {
    do {
      try await change(installation ?? push)
      note(event)
      return true
    } catch {
      note("\(event) refused")
      return false
    }
  }
}

/// Random numbers that follow from a seed (SplitMix64).
struct SeededRandom {
  var state: UInt64

  mutating func below(_ limit: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((mixed ^ (mixed >> 31)) % UInt64(limit))
  }
}
