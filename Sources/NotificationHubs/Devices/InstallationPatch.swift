package import Wire

/// Changes to an installation that leave the rest of it as it is (spec `rest-api.md` 4.4).
///
/// Operations apply in order, all or none of them.
///
/// ```swift
/// try await client.patch(
///   installation: id, [.addTag("news"), .removeTag("beta"), .setUserID("u-17")])
/// ```
public struct InstallationPatch: Hashable, Sendable, ExpressibleByArrayLiteral {
  public var operations: [Operation]

  public init(_ operations: [Operation]) { self.operations = operations }
  public init(arrayLiteral elements: Operation...) { self.init(elements) }

  /// One change of one place.
  public struct Operation: Hashable, Sendable {
    package enum Verb: String, Hashable, Sendable {
      case add, remove, replace
    }

    package let verb: Verb
    /// Segments of the path, unescaped.
    package let path: [String]
    /// A text, or JSON; the two forms are equal for objects and arrays.
    package let value: JSONValue?

    package init(_ verb: Verb, _ path: [String], _ value: JSONValue? = nil) {
      self.verb = verb
      self.path = path
      self.value = value
    }
  }
}

extension InstallationPatch.Operation {
  /// Adds one tag; nothing happens if it is there.
  public static func addTag(_ tag: Tag) -> Self { Self(.add, ["tags"], .string(tag.rawValue)) }

  /// Removes one tag.
  public static func removeTag(_ tag: Tag) -> Self { Self(.remove, ["tags", tag.rawValue]) }

  /// Puts these tags in the place of all there are.
  public static func setTags(_ tags: [Tag]) -> Self {
    guard !tags.isEmpty else { return Self(.remove, ["tags"]) }
    return Self(.replace, ["tags"], .json(.array(tags.map { .string($0.rawValue) })))
  }

  /// Says who is signed in; `nil` that nobody is.
  public static func setUserID(_ userID: String?) -> Self {
    guard let userID else { return Self(.remove, ["userId"]) }
    return Self(.replace, ["userId"], .string(userID))
  }

  /// Gives the device a new channel; the hub takes it for alive again.
  public static func setPushChannel(_ channel: PushChannel) -> Self {
    switch channel {
    case .handle(let text): Self(.replace, ["pushChannel"], .string(text))
    case .subscription(let endpoint, let p256dh, let auth):
      Self(
        .replace, ["pushChannel"],
        .json(PushChannel.subscriptionJSON(endpoint: endpoint, p256dh: p256dh, auth: auth)))
    }
  }

  /// Puts these variables in the place of all there are.
  public static func setPushVariables(_ variables: [String: String]) -> Self {
    guard !variables.isEmpty else { return Self(.remove, ["pushVariables"]) }
    let members = variables.sorted { $0.key < $1.key }
      .map { JSONValue.Member($0.key, .string($0.value)) }
    return Self(.replace, ["pushVariables"], .json(.object(members)))
  }

  /// Creates a template, or puts it in the place of the one of that name.
  public static func setTemplate(_ name: String, _ template: PushTemplate) -> Self {
    Self(.replace, ["templates", name], .string(template.jsonText))
  }

  /// Changes the text of a template that is there.
  public static func setTemplateBody(_ name: String, _ body: String) -> Self {
    Self(.replace, ["templates", name, "body"], .string(body))
  }

  public static func removeTemplate(_ name: String) -> Self { Self(.remove, ["templates", name]) }

  /// Creates a secondary tile, or puts it in the place of the one of that id.
  public static func setSecondaryTile(_ id: String, _ tile: SecondaryTile) -> Self {
    Self(.replace, ["secondaryTiles", id], .string(tile.jsonText))
  }

  public static func removeSecondaryTile(_ id: String) -> Self {
    Self(.remove, ["secondaryTiles", id])
  }
}

extension JSONValue {
  /// JSON as text: the form in which patches carry objects and arrays.
  fileprivate static func json(_ value: JSONValue) -> JSONValue {
    .string(String(decoding: value.jsonBytes, as: UTF8.self))
  }
}
