import HTTP2

/// A reason for which Xiaomi refuses a message; sent with status 200
/// (docs/protocol/push-services/xiaomi.md, section 4).
struct XiaomiFault: Error, Sendable {
  let code: Int
  let reason: String

  init(_ code: Int, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  static func parameter(_ what: String) -> XiaomiFault { XiaomiFault(10016, what) }
}

/// A request to Xiaomi (docs/protocol/push-services/xiaomi.md, section 3).
struct XiaomiRequest: Sendable {
  let plain: PlainRequest
  let form: FormFields?

  private static let paths = ["/v2/message/regid", "/v3/message/regid"]

  init(_ request: HTTP2ServerRequest) {
    plain = PlainRequest(request)
    form = plain.form
  }

  var isOfPath: Bool { Self.paths.contains(plain.path) }

  /// The app's secret.
  var secret: String? {
    guard let field = plain["authorization"], field.hasPrefix("key=") else { return nil }
    return String(field.dropFirst(4))
  }

  struct Message: Sendable {
    let ids: [String]
    let packages: [String]
    let payload: String
    let isPassThrough: Bool
    /// A newer message of the same key replaces an older one.
    let key: String?
    /// Time in ms from the moment when it may be shown.
    let lifetime: Int64
    /// In ms since the Unix epoch; 0 for at once.
    let notBefore: Int64
    let fields: [(name: String, value: String)]
  }

  /// - Parameter now: In ms.
  func message(now: Int64) throws(XiaomiFault) -> Message {
    guard let form else { throw XiaomiFault(10008, "the body is no form") }
    let ids = (form["registration_id"] ?? "").split(separator: ",").map(String.init)
    guard !ids.isEmpty else { throw XiaomiFault(10017, "registration_id is missing") }
    guard ids.count <= 1000 else { throw .parameter("registration_id names more than 1000") }
    let payload = form["payload"] ?? ""
    guard payload.utf8.count <= 4096 else { throw XiaomiFault(65009, "the message is too long") }
    let isPassThrough = try number(form, "pass_through", in: 0...1) == 1
    if !isPassThrough { try Self.checkWords(form) }
    _ = try number(form, "notify_type", in: -1...7)
    let notifyID = try number(form, "notify_id", in: 0...Int64(Int32.max))
    let lifetime = try number(form, "time_to_live", in: 1...14 * 86_400_000)
    let time = try number(form, "time_to_send", in: 0...EmulatorClock.latest) ?? 0
    guard time <= now + 7 * 86_400_000 else {
      throw .parameter("time_to_send is more than seven days ahead")
    }
    let key = form["extra.jobkey"].map { "job/\($0)" } ?? notifyID.map { "notify/\($0)" }
    return Message(
      ids: ids,
      packages: (form["restricted_package_name"] ?? "").split(separator: ",").map(String.init),
      payload: payload, isPassThrough: isPassThrough, key: key,
      lifetime: lifetime ?? 86_400_000, notBefore: time,
      fields: form.all.filter { $0.name != "registration_id" && $0.name != "payload" })
  }

  /// Checks the title and description of a shown message.
  private static func checkWords(_ form: FormFields) throws(XiaomiFault) {
    for (name, limit) in [("title", 50), ("description", 128)] {
      guard let text = form[name], !text.isEmpty else {
        throw XiaomiFault(10017, "\(name) is missing")
      }
      guard text.count < limit else { throw .parameter("\(name) has \(limit) characters or more") }
    }
  }

  private func number(
    _ form: FormFields, _ name: String, in range: ClosedRange<Int64>
  ) throws(XiaomiFault) -> Int64? {
    guard let text = form[name] else { return nil }
    guard let number = Int64(text), range.contains(number) else {
      throw .parameter("\(name) must be \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }
}
