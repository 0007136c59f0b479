import Wire

/// The effects that a send would have: Belfry's reply to `POST /{hub}/messages?dry-run`.
public struct SendPreview: Hashable, Sendable {
  /// The part of the audience on one platform.
  public struct Share: Hashable, Sendable {
    /// The platform.
    public var platform: PushPlatform
    /// The number of registrations that the send addresses.
    public var devices: Int
    /// The number of these that are duplicates of another registration with the same handle.
    public var duplicates: Int

    /// Creates a share.
    public init(platform: PushPlatform, devices: Int, duplicates: Int) {
      self.platform = platform
      self.devices = devices
      self.duplicates = duplicates
    }
  }

  /// A problem that would keep pushes of a template, or of the payload itself, from having their
  /// full effect.
  public struct Problem: Hashable, Sendable {
    /// The platform.
    public var platform: PushPlatform
    /// The kind of problem: `too-large`, `broken-template`, `missing-property` or `no-credential`;
    /// later versions may add others.
    public var code: String
    /// An explanation for people.
    public var text: String
    /// The number of devices affected.
    public var devices: Int
    /// The beginning of the template; `nil` for a native payload.
    public var template: String?
    /// Whether the push would not be sent at all.
    public var isFatal: Bool

    /// Creates a problem.
    public init(
      platform: PushPlatform, code: String, text: String, devices: Int, template: String?,
      isFatal: Bool
    ) {
      self.platform = platform
      self.code = code
      self.text = text
      self.devices = devices
      self.template = template
      self.isFatal = isFatal
    }
  }

  /// A sample payload for one of the devices.
  public struct Sample: Hashable, Sendable {
    /// The platform of the device.
    public var platform: PushPlatform
    /// The id of the registration; `nil` for a direct send.
    public var registrationID: String?
    /// The payload that the device would get.
    public var rendering: NotificationExplanation.Rendering

    /// Creates a sample.
    public init(
      platform: PushPlatform, registrationID: String?,
      rendering: NotificationExplanation.Rendering
    ) {
      self.platform = platform
      self.registrationID = registrationID
      self.rendering = rendering
    }
  }

  /// The number of devices examined: all of them, unless there are very many.
  public var examined: Int
  /// The size of the whole audience.
  public var devices: Int
  /// The audience by platform.
  public var shares: [Share]
  /// The problems found.
  public var problems: [Problem]
  /// Sample payloads for some of the devices.
  public var samples: [Sample]
  /// The number of devices whose template uses a property, by the property's name in lower case;
  /// empty for a native payload.
  public var properties: [String: Int]
  /// The estimated duration of the delivery, in seconds, at the rate of the last large send; `nil`
  /// if there was none since the server started.
  public var estimatedSeconds: Double?
  /// The rate of the last large send, in devices per second.
  public var devicesPerSecond: Double?

  /// Creates a preview.
  public init(
    examined: Int, devices: Int, shares: [Share], problems: [Problem], samples: [Sample],
    properties: [String: Int] = [:], estimatedSeconds: Double?, devicesPerSecond: Double?
  ) {
    self.examined = examined
    self.devices = devices
    self.shares = shares
    self.problems = problems
    self.samples = samples
    self.properties = properties
    self.estimatedSeconds = estimatedSeconds
    self.devicesPerSecond = devicesPerSecond
  }
}

extension SendPreview {
  package var json: [UInt8] {
    JSONWriter.object(capacity: 1024) { writer in
      writer.member("devices", devices)
      writer.member("examined", examined)
      writer.objects("audience", shares) { writer, share in
        writer.member("platform", share.platform.rawValue)
        writer.member("devices", share.devices)
        writer.member("duplicates", share.duplicates)
      }
      writer.objects("problems", problems) { writer, problem in
        writer.member("platform", problem.platform.rawValue)
        writer.member("code", problem.code)
        writer.member("text", problem.text)
        writer.member("devices", problem.devices)
        writer.member("template", problem.template)
        writer.member("fatal", problem.isFatal)
      }
      writer.objects("samples", samples) { writer, sample in
        writer.member("platform", sample.platform.rawValue)
        writer.member("registrationId", sample.registrationID)
        writer.object("rendering") { sample.rendering.write(to: &$0) }
      }
      writer.counts("properties", properties)
      writer.member("estimatedSeconds", estimatedSeconds)
      writer.member("devicesPerSecond", devicesPerSecond)
    }
  }

  /// Decodes the reply; platforms newer than this build are left out.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let devices = root.count("devices"), let examined = root.count("examined") else {
      throw WireFormatError("The reply is no preview of a send.")
    }
    self.init(
      examined: examined, devices: devices,
      shares: root.items("audience").compactMap { item in
        item.platform.map {
          Share(
            platform: $0, devices: item.count("devices") ?? 0,
            duplicates: item.count("duplicates") ?? 0)
        }
      },
      problems: root.items("problems").compactMap { item in
        item.platform.map {
          Problem(
            platform: $0, code: item.text("code") ?? "", text: item.text("text") ?? "",
            devices: item.count("devices") ?? 0, template: item.text("template"),
            isFatal: item.flag("fatal") ?? false)
        }
      },
      samples: root.items("samples").compactMap { item in
        guard let platform = item.platform, let rendering = item["rendering"] else { return nil }
        return Sample(
          platform: platform, registrationID: item.text("registrationId"),
          rendering: .init(rendering))
      },
      properties: root.counts("properties"),
      estimatedSeconds: root.text("estimatedSeconds").flatMap(Double.init),
      devicesPerSecond: root.text("devicesPerSecond").flatMap(Double.init))
  }
}
