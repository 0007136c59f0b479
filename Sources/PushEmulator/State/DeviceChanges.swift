/// Operations of the control API on devices. Every method increments `revision`, because the state
/// file contains what they change.
extension EmulatorState {
  /// A device's external id, from its index.
  static func deviceID(_ index: Int) -> String { "dev-\(index + 1)" }

  /// The index of a device that exists.
  func deviceIndex(_ id: String) throws(ControlError) -> Int {
    guard id.hasPrefix("dev-"), let number = Int(id.dropFirst(4)), number >= 1,
      number <= devices.count, Self.deviceID(number - 1) == id,
      !devices[number - 1].flags.contains(.deleted)
    else { throw .notFound("device '\(id)'") }
    return number - 1
  }

  /// The requested changes of a device; `nil` leaves a property unchanged.
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

  /// Runs a change that may bring the device online or offline, or end its low-power mode, and its
  /// consequences: the `state` event and the release of waiting messages.
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

    /// - Parameter time: Since when, in ms.
    func registration(at time: Int64) -> Device.Registration {
      switch self {
      case .unregistered: .unregistered(at: time)
      case .expired: .expired(at: time)
      case .unknown: .unknown
      }
    }
  }

  /// Ends a device's registration.
  ///
  /// - Parameters:
  ///   - at: The time of the end, in ms.
  ///   - silentFor: Time in seconds for which the service still replies with success and discards
  ///     messages.
  mutating func unregister(_ index: Int, _ end: RegistrationEnd, at: Int64, silentFor: Int64) {
    devices[index].registration = end.registration(at: at)
    devices[index].silentUntil = silentFor > 0 ? clock.now + silentFor * 1000 : 0
    devices.discardWaiting(index, why: .unregisteredSilent)
    devices.record(.state(.unregistered), for: index)
    revision += 1
  }

  /// Gives the device a new handle; the old one is unregistered from now on.
  mutating func rotate(_ index: Int) {
    let old = devices[index].handle
    replaceHandle(of: index, with: self[old.service].freshHandle(after: old, in: &self))
  }

  /// Registers the device under this handle, which may be a former one or its current one.
  mutating func replaceHandle(of index: Int, with new: DeviceHandle) {
    let now = clock.now
    let old = devices[index].handle
    handles.set(new, device: index)
    devices[index].handle = new
    let wasRegistered = devices[index].registration(at: now) == .registered
    let end = wasRegistered ? .unregistered(at: now) : devices[index].registration(at: now)
    let oldest = devices.withLog(of: index) { log -> FormerHandle? in
      log.formerHandles.removeAll { $0.handle == new }
      if old != new { log.formerHandles.append(FormerHandle(handle: old, registration: end)) }
      return log.formerHandles.count > Self.formerHandleLimit
        ? log.formerHandles.removeFirst() : nil
    }
    if let oldest { handles.set(oldest.handle, device: nil) }
    devices[index].registration = .registered
    devices[index].silentUntil = 0
    let lifetime = self[old.service].handleLifetime
    devices[index].expiresAt = lifetime.map { now + $0 * 1000 } ?? .max
    devices.record(.state(.rotated), for: index)
    revision += 1
  }

  /// Maximum number of former handles of a device; older ones become unknown to the service.
  private static let formerHandleLimit = 100

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

  /// Opens the stream of all devices of an app, which counts as each device's open stream.
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

  /// Handles a stream that could not deliver the events it had taken: the device goes offline, and
  /// the undelivered notifications return to the store.
  mutating func streamStalled(_ index: Int, undelivered: [Notification]) {
    guard index < devices.count else { return }
    change(index, DeviceChange(online: false))
    for notification in undelivered.reversed() {
      devices.takeBack(notification, for: index, now: clock.now)
    }
  }
}

extension DeviceTable {
  /// The devices of an app, except deleted ones.
  func indices(ofApp app: UInt32, following: Bool = false) -> [Int] {
    devices.indices.filter {
      devices[$0].app == app && !devices[$0].flags.contains(.deleted)
        && (!following || devices[$0].flags.contains(.followsStream))
    }
  }
}

/// The properties of new devices that all services share (docs/protocol/emulator.md, section 2.2).
struct DeviceRequest: Sendable {
  var app: UInt32
  var count = 1
  var online = true
  var presence = Presence.flag
  /// Seconds until the handle expires.
  var ttl: Int64?
  var end: EmulatorState.RegistrationEnd?
  /// The time of `end`, in ms.
  var at: Int64?
  var minUrgency = Urgency.veryLow

  init(app: UInt32) { self.app = app }

  /// The members of `POST /v1/devices` that are read here.
  static let members = [
    "appId", "count", "online", "presence", "ttl", "state", "at", "minUrgency",
  ]

  /// Maximum number of devices in one request.
  private static let limit: Int64 = 1_000_000

  init(_ body: JSONReader, app: UInt32) throws(ControlError) {
    self.app = app
    count = Int(try body.int("count", in: 1...Self.limit) ?? 1)
    online = try body.bool("online") ?? true
    presence = try body.word("presence", Presence.self) ?? .flag
    ttl = try body.int("ttl", in: 0...10_000_000_000)
    end = try body.word("state", EmulatorState.RegistrationEnd.self)
    at = try body.int("at", in: 0...EmulatorClock.latest)
    if at != nil, end == nil { throw body.invalid("at", "goes with 'state' only") }
    minUrgency = try body.urgency("minUrgency") ?? .veryLow
  }
}

extension JSONReader {
  /// One of Web Push's four words for urgency.
  func urgency(_ member: String) throws(ControlError) -> Urgency? {
    guard let word = try string(member) else { return nil }
    guard let urgency = Urgency(word: word) else {
      throw invalid(member, "must be one of: \(Urgency.words.joined(separator: ", "))")
    }
    return urgency
  }
}

extension EmulatorState {
  /// Makes devices with the handles of their service.
  ///
  /// - Parameters:
  ///   - fixed: The fixed handle of the one new device.
  ///   - pattern: The pattern of fresh handles.
  mutating func addDevices(
    _ request: DeviceRequest, fixed: DeviceHandle?, like pattern: DeviceHandle? = nil
  ) throws(ControlError) -> Range<Int> {
    guard let service = apps[request.app] else { throw .notFound("app \(request.app)") }
    if let fixed {
      guard request.count == 1 else {
        throw .invalidValue("count", "must be 1 with a fixed handle")
      }
      guard handles.device(fixed) == nil else {
        throw .conflict("a device of \(service.rawValue) has that handle or token already")
      }
    }
    let now = clock.now
    let standIn = self[service]
    devices.reserve(request.count)
    let first = devices.count
    var flags: Device.Flags = request.online ? .online : []
    if request.presence == .stream { flags.insert(.followsStream) }
    let lifetime = request.ttl ?? standIn.handleLifetime
    for _ in 0..<request.count {
      let handle = fixed ?? standIn.freshHandle(after: pattern, in: &self)
      if devices.count == first, request.count > 1 { handles.reserve(request.count, like: handle) }
      var device = Device(app: request.app, handle: handle, flags: flags)
      device.minUrgency = request.minUrgency
      if let lifetime { device.expiresAt = now + lifetime * 1000 }
      if let end = request.end { device.registration = end.registration(at: request.at ?? now) }
      handles.set(handle, device: devices.add(device))
    }
    revision += 1
    return first..<devices.count
  }
}
