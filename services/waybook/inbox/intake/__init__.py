"""Mail intake: bytes of any quality in, one typed mail or one clear reason out. Nothing here raises over a mail."""
