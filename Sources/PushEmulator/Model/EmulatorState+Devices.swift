/// What the control API does with devices. Every method bumps `revision`, since the state file
/// holds what they change.
extension EmulatorState {
  /// A device's id on the outside, from its index.
  static func deviceID(_ index: Int) -> String { "dev-\(index + 1)" }

  /// The index of a device that exists.
  func deviceIndex(_ id: String) throws(ControlError) -> Int {
    guard id.hasPrefix("dev-"), let number = Int(id.dropFirst(4)), number >= 1,
      number <= devices.count, Self.deviceID(number - 1) == id,
      !devices[number - 1].flags.contains(.deleted)
    else { throw .notFound("device '\(id)'") }
    return number - 1
  }

  /// What a device may be told to change; `nil` leaves it.
  struct DeviceChange: Sendable {
    var online: Bool?
    var powerSaving: Bool?
    var disabled: Bool?
    var presence: Presence?
    var minUrgency: Urgency?
  }

  mutating func change(_ index: Int, _ change: DeviceChange) {
    observing(index) { state in
      func set(_ flag: Device.Flags, _ value: Bool?) {
        guard let value else { return }
        if value {
          state.devices[index].flags.insert(flag)
        } else {
          state.devices[index].flags.remove(flag)
        }
      }
      set(.online, change.online)
      set(.powerSaving, change.powerSaving)
      set(.disabled, change.disabled)
      set(.followsStream, change.presence.map { $0 == .stream })
      if let urgency = change.minUrgency { state.devices[index].minUrgency = urgency }
    }
    revision += 1
  }

  /// Runs a change that may bring the device online or offline, or end its power saving, and does
  /// what follows from it: the `state` event and the release of what waits.
  mutating func observing(_ index: Int, _ body: (inout EmulatorState) -> Void) {
    let wasOnline = devices.isOnline(index)
    body(&self)
    let isOnline = devices.isOnline(index)
    if wasOnline != isOnline {
      devices.record(.state(isOnline ? .online : .offline), for: index)
    }
    settle(index, now: clock.now)
  }

  enum RegistrationEnd: String, CaseIterable, Sendable {
    case unregistered, expired, unknown
  }

  /// Ends a device's registration.
  ///
  /// - Parameters:
  ///   - at: Since when, in ms.
  ///   - silentFor: Seconds in which the service still answers success and throws messages away.
  mutating func unregister(_ index: Int, _ end: RegistrationEnd, at: Int64, silentFor: Int64) {
    devices[index].registration =
      switch end {
      case .unregistered: .unregistered(at: at)
      case .expired: .expired(at: at)
      case .unknown: .unknown
      }
    devices[index].silentUntil = silentFor > 0 ? clock.now + silentFor * 1000 : 0
    devices.discardWaiting(index, why: .unregisteredSilent)
    devices.record(.state(.unregistered), for: index)
    revision += 1
  }

  /// Gives the device a new handle; the old one is unregistered from now on.
  mutating func rotate(_ index: Int) {
    switch devices[index].handle {
    case .apns(let handle):
      let new = APNsHandle(
        token: freshToken(in: handle.environment), environment: handle.environment,
        kind: handle.kind)
      replaceHandle(of: index, with: .apns(new))
    case .named(let handle):
      let new = handle.service.desk.freshHandle(after: handle, in: &self)
      replaceHandle(of: index, with: .named(new))
    }
  }

  /// Registers the device by this handle, which may be a former one or the one that it has.
  mutating func replaceHandle(of index: Int, with new: DeviceHandle) {
    let now = clock.now
    let old = devices[index].handle
    set(new, device: index)
    devices[index].handle = new
    let wasRegistered = devices[index].registration(at: now) == .registered
    let end = wasRegistered ? .unregistered(at: now) : devices[index].registration(at: now)
    devices.withLog(of: index) { log in
      log.formerHandles.removeAll { $0.handle == new }
      if old != new { log.formerHandles.append(FormerHandle(handle: old, registration: end)) }
    }
    forgetOldestHandle(of: index)
    devices[index].registration = .registered
    devices[index].silentUntil = 0
    let lifetime = old.service.desk.handleLifetime
    devices[index].expiresAt = lifetime.map { now + $0 * 1000 } ?? .max
    devices.record(.state(.rotated), for: index)
    revision += 1
  }

  /// Former handles kept for one device; older ones become unknown to the service.
  private static let formerHandleLimit = 100

  private mutating func forgetOldestHandle(of index: Int) {
    let oldest = devices.withLog(of: index) { log in
      log.formerHandles.count > Self.formerHandleLimit ? log.formerHandles.removeFirst() : nil
    }
    if let oldest { forget(oldest.handle) }
  }

  /// The service knows the handle for this device's, now or formerly.
  mutating func set(_ handle: DeviceHandle, device index: Int) {
    switch handle {
    case .apns(let handle): apns.set(handle, device: index)
    case .named(let handle): handles.set(handle, device: index)
    }
  }

  /// The service knows the handle no more.
  mutating func forget(_ handle: DeviceHandle) {
    switch handle {
    case .apns(let handle): apns.forget(handle)
    case .named(let handle): handles.forget(handle)
    }
  }

  /// A token that no device of the environment has or had.
  mutating func freshToken(in environment: APNsEnvironment) -> APNsToken {
    while true {
      let token = APNsToken(&generator)
      if apns.device(token, in: environment) == nil { return token }
    }
  }

  // MARK: Streams

  /// Opens a device's event stream; one that was open is superseded.
  mutating func openReader(_ index: Int, wake: @escaping @Sendable () -> Void) -> Int {
    let reader = newReader(wake)
    observing(index) { state in
      state.devices.withLog(of: index) { log in
        log.reader?.signal()
        log.reader = reader
      }
    }
    return reader.id
  }

  /// Ends a device's stream, unless it has been superseded.
  mutating func closeReader(_ index: Int, id: Int) {
    guard index < devices.count, devices.log(of: index)?.reader?.id == id else { return }
    observing(index) { state in
      state.devices.withLog(of: index) { $0.reader = nil }
    }
  }

  /// Opens the stream of all devices of an app; it counts as the open stream of each.
  mutating func openReader(app: UInt32, wake: @escaping @Sendable () -> Void) -> Int {
    let reader = newReader(wake)
    setReader(reader, app: app)
    return reader.id
  }

  mutating func closeReader(app: UInt32, id: Int) {
    guard apps[app] != nil, devices.feed(of: app).reader?.id == id else { return }
    setReader(nil, app: app)
  }

  private mutating func setReader(_ reader: EventReader?, app: UInt32) {
    let followers = devices.indices(ofApp: app, following: true)
    let wasOnline = followers.map { devices.isOnline($0) }
    devices.withFeed(of: app) { feed in
      feed.reader?.signal()
      feed.reader = reader
    }
    let now = clock.now
    for (index, before) in zip(followers, wasOnline) where devices.isOnline(index) != before {
      devices.record(.state(before ? .offline : .online), for: index)
      settle(index, now: now)
    }
  }

  /// A stream could not pass on what it had taken: the device is offline, and the notifications it
  /// had in hand go back to the store.
  mutating func streamStalled(_ index: Int, undelivered: [Notification]) {
    guard index < devices.count else { return }
    change(index, DeviceChange(online: false))
    for notification in undelivered.reversed() {
      devices.takeBack(notification, for: index, now: clock.now)
    }
  }
}

extension DeviceTable {
  /// The devices of an app, deleted ones left out.
  func indices(ofApp app: UInt32, following: Bool = false) -> [Int] {
    devices.indices.filter {
      devices[$0].app == app && !devices[$0].flags.contains(.deleted)
        && (!following || devices[$0].flags.contains(.followsStream))
    }
  }
}
