package import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The address of a device at its push service, also called a handle.
public enum PushChannel: Hashable, Sendable {
  /// A token, a registration id or a channel URI, as the push service issued it.
  case handle(String)
  /// A Web Push subscription.
  case subscription(endpoint: String, p256dh: String, auth: String)

  /// The channel of an Apple device: the token passed to
  /// `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)` as upper-case hexadecimal
  /// digits, the form in which the service stores it.
  public static func apns(_ deviceToken: Data) -> PushChannel {
    .handle(Hex.encodeUpper(deviceToken))
  }

  /// The channel of an Apple device whose token is given as text, as on a backend.
  ///
  /// - Parameter hexToken: Hexadecimal digits in either case, two for each byte.
  /// - Throws: ``WireFormatError`` for anything else.
  public static func apns(hexToken: String) throws(WireFormatError) -> PushChannel {
    guard !hexToken.isEmpty, let token = hexToken.asAPNsToken else {
      throw WireFormatError("An APNs device token is hexadecimal digits, two for each byte.")
    }
    return .handle(token)
  }

  /// The channel of an app on Firebase Cloud Messaging: its registration token.
  ///
  /// - SeeAlso: <https://firebase.google.com/docs/cloud-messaging/android/client#sample-register>
  public static func fcm(registrationToken: String) -> PushChannel { .handle(registrationToken) }

  /// The channel of a Windows app: the URI returned by
  /// `CreatePushNotificationChannelForApplicationAsync` or the Windows App SDK's
  /// `PushNotificationManager`, character for character. It expires after 30 days.
  ///
  /// - SeeAlso:
  ///   <https://learn.microsoft.com/windows/apps/design/shell/tiles-and-notifications/windows-push-notification-services--wns--overview>
  public static func wns(channelURI: String) -> PushChannel { .handle(channelURI) }

  /// The channel of an app on Amazon Device Messaging: its registration id.
  ///
  /// - SeeAlso: <https://developer.amazon.com/docs/adm/integrate-your-app.html>
  public static func adm(registrationID: String) -> PushChannel { .handle(registrationID) }

  /// The channel of an app on Xiaomi Push: its registration id.
  ///
  /// - SeeAlso: <https://dev.mi.com/distribute/doc/details?pId=1219>
  public static func xiaomi(registrationID: String) -> PushChannel { .handle(registrationID) }

  /// The channel of a browser, from its subscription as JSON, as a page posts it after
  /// `JSON.stringify(await registration.pushManager.subscribe(…))`.
  ///
  /// - Throws: ``WireFormatError`` if `endpoint`, `keys.p256dh` or `keys.auth` is missing.
  /// - SeeAlso: <https://developer.mozilla.org/docs/Web/API/PushSubscription/toJSON>
  public static func browser(subscriptionJSON: Data) throws(WireFormatError) -> PushChannel {
    let json = try JSONValue.parse(subscriptionJSON)
    guard case .string(let endpoint)? = json["endpoint"], let keys = json["keys"],
      case .string(let p256dh)? = keys["p256dh"], case .string(let auth)? = keys["auth"]
    else {
      throw .body("A subscription has the members endpoint, keys.p256dh and keys.auth.")
    }
    return .subscription(endpoint: endpoint, p256dh: p256dh, auth: auth)
  }

  /// The channel of a Baidu device: two ids joined in one text, `userId-channelId`.
  ///
  /// A hyphen or percent sign in the user id is percent-encoded, so that the ids can be separated
  /// again (``baiduIDs``); Baidu's own ids are numbers.
  public static func baidu(userID: String, channelID: String) -> PushChannel {
    let user = userID.split(separator: "%", omittingEmptySubsequences: false)
      .joined(separator: "%25").split(separator: "-", omittingEmptySubsequences: false)
      .joined(separator: "%2D")
    return .handle("\(user)-\(channelID)")
  }

  /// The two ids of a Baidu device; `nil` if the handle does not consist of two.
  public var baiduIDs: (userID: String, channelID: String)? {
    let text = handle
    guard let hyphen = text.firstIndex(of: "-") else { return nil }
    return (String(text[..<hyphen]).percentDecoded, String(text[text.index(after: hyphen)...]))
  }

  /// The handle as one text, which a registration stores and which identifies the device at its
  /// push service. For a subscription, this is its endpoint.
  public var handle: String {
    switch self {
    case .handle(let text): text
    case .subscription(let endpoint, _, _): endpoint
    }
  }
}

extension PushChannel {
  /// The subscription as the JSON object in an installation.
  package static func subscriptionJSON(endpoint: String, p256dh: String, auth: String) -> JSONValue
  {
    .object([
      JSONValue.Member("endpoint", .string(endpoint)),
      JSONValue.Member("p256dh", .string(p256dh)),
      JSONValue.Member("auth", .string(auth)),
    ])
  }

  /// Decodes an installation's `pushChannel`.
  ///
  /// - Returns: The channel, and whether a subscription was encoded as text.
  package static func decode(
    _ value: JSONValue, platform: PushPlatform
  ) throws(WireFormatError) -> (channel: PushChannel, isText: Bool) {
    guard platform == .browser else {
      guard case .string(let text) = value else {
        throw .body("'PushChannel' must be a text for the platform '\(platform.rawValue)'.")
      }
      return (.handle(text), false)
    }
    if case .string(let text) = value {
      let inner: JSONValue
      do { inner = try JSONValue.parse(text.utf8) } catch {
        throw .body("'PushChannel' must hold a subscription with endpoint, p256dh and auth.")
      }
      return (try subscription(inner), true)
    }
    return (try subscription(value), false)
  }

  private static func subscription(_ value: JSONValue) throws(WireFormatError) -> PushChannel {
    guard case .string(let endpoint)? = value["endpoint"],
      case .string(let p256dh)? = value["p256dh"], case .string(let auth)? = value["auth"]
    else {
      throw .body("'PushChannel' must hold a subscription with endpoint, p256dh and auth.")
    }
    return .subscription(endpoint: endpoint, p256dh: p256dh, auth: auth)
  }
}

extension String {
  /// An APNs token with capital digits, which the service stores; `nil` if it is none.
  var asAPNsToken: String? {
    utf8.withBytes { digits in
      guard digits.count.isMultiple(of: 2), digits.isHex else { return nil }
      guard digits.contains(where: { $0 >= UInt8(ascii: "a") }) else { return self }
      return String(unsafeUninitializedCapacity: digits.count) { capitals in
        for (index, digit) in digits.enumerated() {
          capitals[index] = digit >= UInt8(ascii: "a") ? digit - 0x20 : digit
        }
        return digits.count
      }
    }
  }
}
