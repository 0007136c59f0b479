import Cryptography
import HTTP2
import Wire

/// A reason for which Baidu refuses a request (docs/protocol/push-services/baidu.md, section 4).
struct BaiduFault: Error, Sendable {
  let code: Int
  let message: String

  init(_ code: Int, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Most codes have status 400; of the others, only the statuses of 30600 and 30602 are known.
  var status: Int {
    switch code {
    case 30600: 500
    case 30601: 405
    case 30603: 401
    case 30612, 30613, 30616, 30617, 30618: 403
    default: 400
    }
  }

  static func parameter(_ what: String) -> BaiduFault { BaiduFault(30602, what) }
}

/// A request to Baidu, of the older API or the newer (docs/protocol/push-services/baidu.md,
/// section 3).
struct BaiduRequest: Sendable {
  enum Version: Sendable {
    /// REST 2.0 `push_msg`.
    case two
    /// REST 3.0 `push/single_device`.
    case three
  }

  static let path2 = "/rest/2.0/channel/channel"
  static let path3 = "/rest/3.0/push/single_device"

  let plain: PlainRequest
  /// `nil` for a path of neither API.
  let version: Version?
  let form: FormFields?

  init(_ request: HTTP2ServerRequest) {
    plain = PlainRequest(request)
    version =
      switch plain.path {
      case Self.path2: .two
      case Self.path3: .three
      default: nil
      }
    form = plain.form
  }

  /// Checks that the request is a correctly sent form.
  func parameters() throws(BaiduFault) -> FormFields {
    guard version != nil, plain.method == "POST" else {
      throw BaiduFault(30601, "Method Not Allowed")
    }
    if version == .three, plain["user-agent"]?.hasPrefix("BCCS_SDK/3.0") != true {
      throw .parameter("User-Agent must begin with BCCS_SDK/3.0")
    }
    guard let form else { throw .parameter("the body is no form") }
    return form
  }

  /// The signature that the request should have (docs/protocol/push-services/baidu.md, section 2).
  func signature(secret: String) -> String {
    var base = plain.method + plain.origin + plain.path
    let pairs = (form?.all ?? []).filter { $0.name != "sign" }.sorted {
      $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
    }
    for pair in pairs { base += "\(pair.name)=\(pair.value)" }
    var signed: [UInt8] = []
    PercentEncoding.append((base + secret).utf8, .php, to: &signed)
    return Hex.encode(Digest.md5(signed))
  }

  /// A message, from either API.
  struct Message: Sendable {
    let channel: String
    /// Sent by the older API only.
    let user: String?
    /// JSON text.
    let payload: String
    /// Whether it is shown by the system instead of being passed to the app.
    let isNotification: Bool
    /// A newer message of the same key replaces an older one.
    let key: String?
    /// In seconds.
    let lifetime: Int64
  }

  func message(_ form: FormFields) throws(BaiduFault) -> Message {
    let isTwo = version == .two
    func required(_ name: String) throws(BaiduFault) -> String {
      guard let text = form[name], !text.isEmpty else { throw .parameter("\(name) is missing") }
      return text
    }
    func number(
      _ name: String, in range: ClosedRange<Int64>
    ) throws(BaiduFault) -> Int64? {
      guard let text = form[name] else { return nil }
      guard let number = DecimalText.read(text), range.contains(number) else {
        throw .parameter("\(name) must be \(range.lowerBound) to \(range.upperBound)")
      }
      return number
    }
    if isTwo {
      guard form["method"] == "push_msg" else { throw .parameter("method must be push_msg") }
      // A hub does not send to tags or to all devices.
      guard form["push_type"] == "1" else { throw .parameter("push_type must be 1 here") }
    }
    let channel = try required("channel_id")
    let user = isTwo ? try required("user_id") : nil
    let key = isTwo ? try required("msg_keys") : nil
    let payload = try required(isTwo ? "messages" : "msg")
    guard payload.utf8.count <= 4096 else { throw .parameter("the message is over 4096 bytes") }
    let type = try number(isTwo ? "message_type" : "msg_type", in: 0...1) ?? 0
    let device = try number("device_type", in: 3...4)
    _ = try number("deploy_status", in: 1...2)
    let lifetime = try number(isTwo ? "message_expires" : "msg_expires", in: 0...7 * 86_400)
    if type == 1, device != 4 {
      guard let json = try? JSONValue.read(Array(payload.utf8), uniqueNames: true),
        json.member("description")?.text != nil
      else {
        throw .parameter("a notification must be JSON with a description")
      }
    }
    return Message(
      channel: channel, user: user, payload: payload, isNotification: type == 1, key: key,
      lifetime: lifetime ?? 18_000)
  }
}
