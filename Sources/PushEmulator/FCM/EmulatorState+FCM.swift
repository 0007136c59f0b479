/// What FCM does with a send request, from the first check to the store (emulator.md, section 5.2).
extension EmulatorState {
  mutating func fcmSend(_ reading: FCMStandIn.Reading, now: Int64) -> ServiceAnswer {
    var credential = Journal.Credential.none
    do throws(FCMRefusal) {
      guard case .send(let project) = reading.path, reading.isPost else {
        throw .init(status: 404, word: "NOT_FOUND", message: "Method not found.")
      }
      let app = try fcmApp(reading, project: project, now: now, credential: &credential)
      let message = try fcmMessage(reading)
      let name = "projects/\(project)/messages/"
      if message.target == .topic {
        // Topics have no subscribers here.
        return Self.fcmAnswer(name + String(generator.next()), credential, nil)
      }
      let device = try fcmDevice(of: app, message, now: now)
      if message.isValidateOnly {
        return Self.fcmAnswer(name + "fake_message_id", credential, nil)
      }
      let ttl = message.timeToLive ?? FCMMessage.longestTTL
      guard
        fcm.isWithinRates(
          device: device, app: app.number, isCollapsible: message.collapseKey != nil && ttl > 0,
          options: settings.fcm, now: now)
      else { throw .fcm("QUOTA_EXCEEDED", "Quota exceeded.", retryAfter: 60) }
      let id = "0:\(now * 1000 + Int64(lastRequest % 1000))%\(generator.hex(16))"
      let notification = Self.notification(
        message, id: id, from: app.senderID, ttl: ttl, now: now, requestSeq: lastRequest)
      return Self.fcmAnswer(name + id, credential, take(notification, for: device, now: now))
    } catch {
      if reading.bearer != nil, case .none = credential { credential = .refusedToken }
      var answer = ServiceAnswer(error.response, reason: error.reason)
      answer.credential = credential
      return answer
    }
  }

  private static func fcmAnswer(
    _ name: String, _ credential: Journal.Credential, _ action: StoreAction?
  ) -> ServiceAnswer {
    var answer = ServiceAnswer(.json(200, ["name": .string(name)]))
    answer.credential = credential
    answer.storeAction = action
    return answer
  }

  /// Checks 2 and 3: who is asking, and for which project.
  private func fcmApp(
    _ reading: FCMStandIn.Reading, project: String, now: Int64,
    credential: inout Journal.Credential
  ) throws(FCMRefusal) -> FCMApp {
    guard let bearer = reading.bearer, let token = fcm.token(bearer, now: now) else {
      throw .init(
        status: 401, word: "UNAUTHENTICATED",
        message: "Request had invalid authentication credentials. Expected OAuth 2 access token.")
    }
    guard token.scopes.contains(where: { Self.sendScopes.contains($0) }),
      let app = fcm.app(project: project), app.number == token.app
    else {
      throw .init(
        status: 403, word: "PERMISSION_DENIED",
        message: "Permission 'cloudmessaging.messages.create' denied on resource "
          + "'//cloudresourcemanager.googleapis.com/projects/\(project)' (or it may not exist).")
    }
    credential = Self.credential(token.clientEmail, scopes: token.scopes)
    return app
  }

  /// Checks 4 to 7.
  private func fcmMessage(_ reading: FCMStandIn.Reading) throws(FCMRefusal) -> FCMMessage {
    switch reading.message {
    case .success(let message): return message
    case .failure(let refusal): throw refusal
    case nil: throw .badRequest("message", "Invalid value at 'message': a message is required.")
    }
  }

  /// Checks 8 to 11. A device is registered by its token or by its installation id, and has the
  /// other no more; `token` takes an id too, for the time of the transition.
  private func fcmDevice(
    of app: FCMApp, _ message: FCMMessage, now: Int64
  ) throws(FCMRefusal) -> Int {
    let token: String
    switch message.target {
    case .topic: throw .badRequest("message.token", "Recipient of the message is not set.")
    case .fid(let fid):
      guard fid.utf8.count <= 256,
        fid.utf8.allSatisfy({ FCMToken.isLetter($0) || $0 == UInt8(ascii: ":") })
      else {
        throw .badRequest("message.fid", "Invalid value at 'message.fid': no installation id")
      }
      guard FCMToken.isInstallationID(fid) else {
        throw .fcm("UNREGISTERED", "Requested entity was not found.")
      }
      token = fid
    case .token(let text):
      guard FCMToken.isWellFormed(text) || FCMToken.isInstallationID(text) else {
        throw .fcm(
          "INVALID_ARGUMENT",
          "The registration token is not a valid FCM registration token")
      }
      token = text
    }
    let found = find(.fcm, token, now: now)
    if let found, devices[found.device].app != app.number {
      throw .fcm("SENDER_ID_MISMATCH", "SenderId mismatch")
    }
    guard let found, found.isAlive else {
      throw .fcm("UNREGISTERED", "Requested entity was not found.")
    }
    if let package = message.restrictedPackage, package != app.packageName {
      throw .fcm(
        "INVALID_ARGUMENT",
        "The registration token does not match the restricted package name.")
    }
    return found.device
  }

  // MARK: Registration

  /// Registers a device by its installation id or by a new token, as its app would; the other
  /// registration ends. An id comes back with the same letters.
  mutating func registerAtFCM(
    _ index: Int, by registration: FCMDesk.Registration
  ) throws(ControlError) {
    guard case .named(let old) = devices[index].handle, old.service == .fcm else {
      throw .invalidValue("by", "is for devices of fcm")
    }
    guard let fid = FCMToken.installationID(of: old.text) else {
      throw .conflict("the device's token does not begin with an installation id")
    }
    let text: String
    switch registration {
    case .fid: text = fid
    case .token where old.text == fid: text = FCMToken.make(fid, &generator)
    case .token: text = old.text
    }
    replaceHandle(of: index, with: .named(NamedHandle(service: .fcm, text: text)))
  }

  // MARK: Store and forward

  private static func notification(
    _ message: FCMMessage, id: String, from sender: String, ttl: Int64, now: Int64,
    requestSeq: Int
  ) -> Notification {
    var fields: [Notification.Field] = [
      .init(name: "from", value: sender),
      .init(name: "priority", value: message.isHighPriority ? "HIGH" : "NORMAL"),
      .init(name: "ttl", value: "\(ttl / 1000)s"),
    ]
    if let key = message.collapseKey { fields.append(.init(name: "collapse_key", value: key)) }
    return Notification(
      id: .word(id), receivedAt: now, headers: .fields(.fcm, fields), payload: message.payload,
      urgency: message.isHighPriority ? .high : .normal, collapseKey: message.collapseKey,
      storableUntil: ttl > 0 ? now + ttl : 0,
      shelf: message.collapseKey == nil ? FCMShelves.others : FCMShelves.collapsible,
      requestSeq: requestSeq)
  }
}

/// How much FCM keeps for a device that is offline (fcm-v1.md, section 5).
enum FCMShelves {
  /// 100 messages; one more and all are gone.
  static let others = Shelf(number: 0, limit: 100, overflow: .dropsAll)
  /// The newest message of each of 4 collapse keys.
  static let collapsible = Shelf(number: 1, limit: 4, overflow: .dropsOldest)
}
