// The first file of this room; it goes when the room is furnished.
