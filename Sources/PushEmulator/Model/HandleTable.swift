/// Which device has which handle at the services other than APNs; former handles stay.
struct HandleTable: Sendable {
  private var devices: [PushService: [String: Int32]] = [:]

  func device(_ service: PushService, _ text: String) -> Int? {
    devices[service]?[text].map(Int.init)
  }

  mutating func set(_ handle: NamedHandle, device: Int) {
    devices[handle.service, default: [:]][handle.text] = Int32(device)
  }

  mutating func forget(_ handle: NamedHandle) { devices[handle.service]?[handle.text] = nil }

  mutating func reserve(_ more: Int, for service: PushService) {
    let count = devices[service]?.count ?? 0
    devices[service, default: [:]].reserveCapacity(count + more)
  }

  mutating func forgetAll() { devices = [:] }
}

/// What a service knows of a handle that a request names.
struct FoundHandle: Sendable {
  let device: Int
  let handle: NamedHandle
  /// Of the handle, which may be a former one of the device.
  let registration: Device.Registration
  /// The device's present handle, for services that tell it to anyone who uses the former one.
  let current: NamedHandle

  /// Whether the service takes messages for it: it is registered, or nobody has noticed yet that it
  /// is not.
  let isAlive: Bool
}

extension EmulatorState {
  /// Looks a handle up at a service other than APNs; `nil` for one that the service never heard of.
  func find(_ service: PushService, _ text: String, now: Int64) -> FoundHandle? {
    guard let index = handles.device(service, text),
      case .named(let current) = devices[index].handle
    else { return nil }
    if current.text == text {
      let registration = devices[index].registration(at: now)
      if registration == .unknown { return nil }
      return FoundHandle(
        device: index, handle: current, registration: registration, current: current,
        isAlive: registration == .registered || now < devices[index].silentUntil)
    }
    for former in devices.log(of: index)?.formerHandles ?? [] {
      if case .named(let handle) = former.handle, handle.text == text {
        if former.registration == .unknown { return nil }
        return FoundHandle(
          device: index, handle: handle, registration: former.registration, current: current,
          isAlive: false)
      }
    }
    return nil
  }
}
