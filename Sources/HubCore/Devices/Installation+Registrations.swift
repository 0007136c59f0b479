package import NotificationHubs

extension Installation {
  /// The registrations that are derived from it, exactly as docs/protocol/rest.md, section 4.6
  /// specifies: one native registration and one for each template, in the order of their names; the
  /// same for each secondary tile.
  ///
  /// A channel that the push service has reported dead has no registrations until the app sends a
  /// new one, so that no patch revives it.
  package var registrationDrafts: [RegistrationDraft] {
    var common = TagList()
    common.add(.installation(installationID))
    if let userID { common.add(.user(userID)) }
    common.add(tags)
    var drafts: [RegistrationDraft] = []
    if !pushChannelExpired {
      drafts += self.drafts(channel: pushChannel, tags: common, templates: templates, tile: nil)
    }
    for (id, tile) in secondaryTiles.sorted(by: { $0.key < $1.key }) where !tile.pushChannelExpired
    {
      var common = common
      common.add(tile.tags)
      drafts += self.drafts(
        channel: .handle(tile.pushChannel), tags: common, templates: tile.templates, tile: id)
    }
    return drafts
  }

  private func drafts(
    channel: PushChannel, tags: TagList, templates: [String: PushTemplate], tile: String?
  ) -> [RegistrationDraft] {
    let native = RegistrationDraft(
      kind: .native, platform: platform, channel: channel, tags: tags.tags,
      pushVariables: pushVariables, expiresAt: expirationTime, secondaryTileName: tile)
    return [native]
      + templates.sorted { $0.key < $1.key }.map { name, template in
        var tags = tags
        tags.add(template.tags)
        tags.add(Tag(rawValue: name))
        var draft = native
        // The tags are in the registration; without them equal templates are stored once.
        var shared = template
        shared.tags = []
        draft.kind = .template(shared, name: name)
        draft.tags = tags.tags
        return draft
      }
  }
}

/// Tags without repeated spellings.
private struct TagList {
  private(set) var tags: [Tag] = []
  /// There are at most some sixty: a linear search is faster than hashing.
  private var folded: [String] = []

  mutating func add(_ tag: Tag) {
    let folded = tag.folded
    guard !self.folded.contains(folded) else { return }
    self.folded.append(folded)
    tags.append(tag)
  }

  mutating func add(_ tags: [Tag]) { for tag in tags { add(tag) } }
}
