/// What the control API needs of a push service: its apps with their credentials, and how it calls
/// its devices (emulator.md, sections 2.1 and 2.2).
protocol ServiceDesk: Sendable {
  var service: PushService { get }

  /// Makes an app from the body of `POST /v1/apps`.
  ///
  /// - Returns: The app's number (see `EmulatorState.newApp`), and what only this answer tells:
  ///   private keys and files.
  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member])

  /// Changes an app by the body of `PATCH /v1/apps/{appId}`: all of it happens, or nothing.
  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError)

  /// What an app shows beside `appId`, `pns` and `devices`.
  ///
  /// - Parameter made: What `makeApp` returned, in the answer to it; it is shown behind these.
  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member]

  /// Forgets an app; its devices are gone already.
  func removeApp(_ number: UInt32, from state: inout EmulatorState)

  /// Makes devices from the body of `POST /v1/devices`.
  ///
  /// - Parameter app: The app's number.
  func makeDevices(
    _ json: JSON, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int>

  /// Seconds that a handle is good for when nobody says; `nil` for no end.
  var handleLifetime: Int64? { get }

  /// `kind` of a device; `nil` where the service has none.
  func kind(of handle: DeviceHandle) -> String?

  /// `handle` of a device.
  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON

  /// A handle that no device of the service has or had.
  /// - Parameter old: The one that it takes the place of.
  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle
}

extension ServiceDesk {
  var handleLifetime: Int64? { nil }
}

/// A service whose handles are one text each.
protocol NamedHandleDesk: ServiceDesk {
  /// The member of `handle` that holds the text.
  var handleMember: String { get }
  /// What a fixed handle must be like, for the error; `nil` if this one is.
  func fault(inHandle text: String) -> String?
  /// What the service looks a device up by, from the member's value; by default the value itself.
  func handleText(of value: String) -> String
}

extension NamedHandleDesk {
  func kind(of handle: DeviceHandle) -> String? { nil }

  func handleText(of value: String) -> String { value }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON {
    guard case .named(let handle) = handle else { return nil }
    return .object([.init(name: handleMember, value: .string(handle.text))])
  }

  func makeDevices(
    _ json: JSON, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(json, known: DeviceRequest.members + ["handle"])
    let request = try DeviceRequest(body, app: app)
    var fixed: NamedHandle?
    if let reader = try body.object("handle", known: [handleMember]),
      let value = try reader.string(handleMember)
    {
      let text = handleText(of: value)
      if let fault = fault(inHandle: text) { throw reader.invalid(handleMember, fault) }
      fixed = NamedHandle(service: service, text: text)
    }
    return try state.addDevices(request, fixed: fixed)
  }
}

extension PushService {
  /// Its desk.
  var desk: any ServiceDesk {
    switch self {
    case .apns: APNsDesk()
    case .fcm: FCMDesk()
    case .webpush: WebPushDesk()
    case .wns: WNSDesk()
    case .adm: ADMDesk()
    case .baidu: BaiduDesk()
    case .xiaomi: XiaomiDesk()
    }
  }
}
